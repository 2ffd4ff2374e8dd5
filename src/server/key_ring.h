#pragma once

#include <optional>
#include <string>
#include <vector>

#include "server/exchange.h"

namespace headrace::server {

/// What a caller may do at most; 0: no limit.
struct CallerLimits {
  int32_t concurrent_requests = 0;
  double requests_per_minute = 0;
};

/// The keys that are accepted. A file has one key a line: the key, then any of name=..., tenant=..., salt=...,
/// concurrency=N, rpm=N, admin; '#' begins a comment. Without salt=, each tenant has a salt of its own, made from its
/// name; without tenant=, the name is the tenant.
class KeyRing {
 public:
  /// No key is asked for: everyone is the same caller, an admin.
  KeyRing() = default;
  /// Throws Error that names file and line; a file without keys is an error.
  [[nodiscard]] static KeyRing load(const std::string& file);

  [[nodiscard]] bool asks_for_keys() const noexcept { return !entries_.empty(); }
  /// Whose key the request carries (Authorization: Bearer, or X-Api-Key); nullopt where it is none of ours. All keys
  /// are compared, each in constant time.
  [[nodiscard]] std::optional<Caller> identify(const HttpRequest& request) const;
  [[nodiscard]] CallerLimits limits_of(const Caller& caller) const;

 private:
  struct Entry {
    std::string key_digest;  // SHA-256, so that all comparisons have the same length
    Caller caller;
    CallerLimits limits;
  };
  std::vector<Entry> entries_;
};

}  // namespace headrace::server
