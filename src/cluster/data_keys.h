#pragma once

#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "cluster/link.h"

namespace headrace::cluster {

/// By what a key is named to who issued it; tells nothing of the key.
[[nodiscard]] std::string data_key_id(std::string_view key);

/// One-time keys for data connections: the side that will accept a connection issues one over a control link, the side
/// that opens it proves to have it. Threading: every function from any thread.
class DataKeys {
 public:
  static constexpr double kLifetimeSeconds = 60;
  using Now = std::function<Deadline()>;
  explicit DataKeys(Now now = std::chrono::steady_clock::now) : now_(std::move(now)) {}

  /// A new key of 32 random bytes, in hexadecimal, for a connection that says `purpose`.
  [[nodiscard]] std::string issue(const std::string& purpose);
  /// The key with that id (data_key_id), which is then gone; nullopt where there is none, it is too old or (the key is
  /// gone then, too) for another purpose.
  [[nodiscard]] std::optional<std::string> take(const std::string& id, const std::string& purpose);

 private:
  struct Issued {
    std::string key, purpose;
    Deadline expires;
  };

  Now now_;
  std::mutex mutex_;
  std::unordered_map<std::string, Issued> issued_;  ///< by id
};

}  // namespace headrace::cluster
