#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "files/hub/http.h"
#include "files/hub/hub_name.h"
#include "files/hub/hub_settings.h"

namespace headrace {

/// What a revision of a model holds.
struct HubListing {
  std::string commit;              ///< a whole commit hash
  std::vector<std::string> files;  ///< paths that stay inside (is_inside_path), sorted; others are left out
};

/// One file of a commit.
struct HubFile {
  std::string path;
  std::string etag;  ///< its digest on the hub; a mirror may give something else, safe as a file name
  int64_t bytes = 0;
};

/// Waits between tries of one request, longer each time.
class Backoff {
 public:
  /// After a try that may do better next time, waits and gives true; false once the tries are used up. The server's
  /// Retry-After is heeded.
  [[nodiscard]] bool wait(const HttpResponse& response);
  /// A try that got something makes the next ones count afresh.
  void reset() noexcept { tries_ = 0; }
  [[nodiscard]] int32_t tries() const noexcept { return tries_; }

 private:
  int32_t tries_ = 0;
};

/// Whether the same request may do better next time: overload, a fault of the server, a broken connection.
[[nodiscard]] bool may_pass(const HttpResponse& response) noexcept;

/// Asks the hub about one model. Requests that may pass are repeated with pauses; the token goes to the endpoint
/// alone, never to where it redirects. Throws LoadError, one line that names the model and the remedy: kUnavailable
/// where the hub cannot be reached, kNotFound, kInvalidArgument where access is refused.
class HubClient {
 public:
  /// Both must outlive it.
  HubClient(const HubSettings& settings, const HubName& name);

  [[nodiscard]] HubListing list();
  [[nodiscard]] HubFile describe(const std::string& commit, const std::string& path);
  /// One try to get the bytes of a file from `offset` on: status 200 (from 0) or 206 reaches the receiver.
  [[nodiscard]] HttpResponse download(const std::string& commit, const std::string& path, int64_t offset,
                                      const HttpReceiver& receiver);
  /// Throws what the answer to a request for `what` ("main", a file) means.
  [[noreturn]] void fail(const HttpResponse& response, const std::string& what);

 private:
  /// Follows redirects. `url` of the last request is left in last_url_.
  HttpResponse follow(HttpRequest request, const HttpReceiver& receiver);
  HttpResponse get_text(const std::string& url, std::string& body);
  [[noreturn]] void fail_unknown_repo();
  [[nodiscard]] std::string file_url(const std::string& commit, const std::string& path) const;

  const HubSettings& settings_;
  const HubName& name_;
  HttpClient http_;
  std::string origin_;
  std::string last_url_;
};

}  // namespace headrace
