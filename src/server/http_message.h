#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace headrace::server {

struct Header {
  std::string name;
  std::string value;
};

/// A request as it came over HTTP.
struct HttpRequest {
  std::string method;           ///< "POST"
  std::string path;             ///< without the query; percent signs decoded: "/v1/models/a b"
  std::string query;            ///< after the question mark, as it came
  std::vector<Header> headers;  ///< names in lower case
  std::string body;
  std::string peer;  ///< address and port of the client
  std::chrono::steady_clock::time_point arrived;
  /// When the client gives up; over HTTP it does not say.
  std::optional<std::chrono::steady_clock::time_point> deadline = {};

  /// The first header of this name (lower case); empty where there is none.
  [[nodiscard]] std::string_view header(std::string_view name) const noexcept;
};

/// A whole answer.
struct HttpReply {
  int status = 200;
  std::string body = {};
  std::string content_type = "application/json";
  std::vector<Header> headers = {};
};

}  // namespace headrace::server
