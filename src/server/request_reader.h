#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "server/http_message.h"

namespace headrace::server {

/// Why a request cannot be taken, as HTTP tells it.
struct RequestFault {
  int status;
  std::string message;
};

/// Reads one HTTP/1.0 or 1.1 request from bytes as they come (RFC 9112). What two readers could understand differently
/// is refused: two lengths, a length beside chunks, codings other than chunked.
class RequestReader {
 public:
  RequestReader(int64_t max_header_bytes, int64_t max_body_bytes);
  ~RequestReader();
  RequestReader(RequestReader&&) noexcept;
  RequestReader& operator=(RequestReader&&) noexcept;

  /// Takes bytes from the front of `input` and returns how many; the rest is to be given again, with what comes after
  /// it. Takes nothing after the end of the request, nor after a fault.
  size_t put(std::string_view input);
  [[nodiscard]] const std::optional<RequestFault>& fault() const noexcept;
  [[nodiscard]] bool head_complete() const noexcept;
  [[nodiscard]] bool complete() const noexcept;
  /// The client waits for "100 Continue" before it sends the body.
  [[nodiscard]] bool waits_for_continue() const noexcept;

  // Once the request is complete:
  [[nodiscard]] bool is_http_1_1() const noexcept;
  /// The client wants to send further requests on this connection.
  [[nodiscard]] bool keep_alive() const noexcept;
  /// The request, without `peer` and `arrived`.
  [[nodiscard]] HttpRequest take();

 private:
  class Parser;
  std::unique_ptr<Parser> parser_;
};

/// "Not Found" for 404; "" for what is not registered.
[[nodiscard]] std::string_view reason_phrase(int status) noexcept;

}  // namespace headrace::server
