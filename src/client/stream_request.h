#pragma once

#include "client/http_client.h"
#include "client/request_record.h"
#include "client/sse_parser.h"

namespace headrace::client {

/// Turns the bytes of one streamed answer into a record.
class StreamRequest : public HttpHandler {
 public:
  /// Fills `record`, whose times count from `origin`; both must live as long as this.
  StreamRequest(RequestRecord& record, Time origin);

  void on_bytes(int64_t status, std::string_view bytes, Time at) override;
  void on_end(const HttpEnd& end) override;
  [[nodiscard]] bool ended() const noexcept { return ended_; }

 private:
  void take_event(std::string_view type, std::string_view data);
  void take_answer(std::string_view data);
  [[nodiscard]] double since_origin(Time at) const;

  RequestRecord& record_;
  Time origin_;
  SseParser parser_;
  Time now_;
  std::string begin_;  ///< of the body, while it may be one JSON object instead of a stream
  bool is_stream_ = false;
  bool ended_ = false;
};

}  // namespace headrace::client
