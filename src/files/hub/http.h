#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

namespace headrace {

/// One HTTP request without a body.
struct HttpRequest {
  std::string url;
  bool head = false;       ///< HEAD, else GET
  std::string token = {};  ///< sent as a bearer token; empty: none
  int64_t offset = 0;      ///< above 0: asks for the bytes from there to the end ("Range")
};

/// How far a request came.
enum class HttpOutcome : uint8_t {
  kAnswered,     ///< with any status
  kUnreachable,  ///< no connection: no such host, refused, no valid certificate
  kBroken,       ///< the connection ended early or stood still
  kStopped,      ///< the receiver had enough
};

struct HttpResponse {
  HttpOutcome outcome = HttpOutcome::kUnreachable;
  std::string fault;  ///< what went wrong, for a person; empty where answered
  int32_t status = 0;
  std::map<std::string, std::string> headers;  ///< names in lower case; the last of several

  /// A header's value, empty where there is none.
  [[nodiscard]] const std::string& header(const std::string& lower_case_name) const;
};

/// Takes a piece of the body; the response has status and headers already. False stops the transfer.
using HttpReceiver = std::function<bool(const HttpResponse& response, std::string_view piece)>;

struct HttpOptions {
  std::chrono::seconds connect_timeout{10};
  std::chrono::seconds stall_timeout{30};  ///< without a byte
};

/// Requests over http and https, by libcurl: it keeps connections, goes through the proxies of the environment
/// (https_proxy, no_proxy), and trusts the system's certificates or those of SSL_CERT_FILE, REQUESTS_CA_BUNDLE or
/// CURL_CA_BUNDLE. Redirects are left to the caller, who knows who may see the token. Used by one thread at a time.
class HttpClient {
 public:
  explicit HttpClient(HttpOptions options);
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  /// Never throws for what a server or network does; see HttpResponse::outcome.
  [[nodiscard]] HttpResponse send(const HttpRequest& request, const HttpReceiver& receiver);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

/// "https://host:443" of an address: who gets the request. Empty where it is no http or https address, or names a user.
[[nodiscard]] std::string origin_of(const std::string& url);

/// `location` (of a redirect, perhaps relative) as an address; empty where it is none.
[[nodiscard]] std::string resolve_url(const std::string& base, const std::string& location);

/// `text` with all but letters, digits and "-._~" as %XX; slashes stay where `keep_slashes`.
[[nodiscard]] std::string url_encode(std::string_view text, bool keep_slashes);

}  // namespace headrace
