#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/crypto.h"
#include "server/exchange.h"

namespace headrace::server {

/// What a caller may do at most; 0: no limit.
struct CallerLimits {
  int32_t concurrent_requests = 0;
  double requests_per_minute = 0;
  bool operator==(const CallerLimits&) const = default;
};

/// The keys that are accepted. A file has one key a line: the key, then any of name=..., tenant=..., salt=...,
/// concurrency=N, rpm=N, admin, metrics (for a scraper); '#' begins a comment (at the start of a word). Without name=,
/// the name is made from the key's digest; without tenant=, the name is the tenant; without salt=, each tenant has a
/// salt of its own, made from its name. Keys of one name, an old and a new one say, are one caller and must agree in
/// the rest.
class KeyRing {
 public:
  /// No key is asked for: everyone is the same caller, an admin.
  KeyRing() = default;
  /// Throws Error that names file and line, and shows no key; a file without keys is an error. Warns about a file that
  /// every user of the machine can read.
  [[nodiscard]] static KeyRing load(const std::string& file);

  [[nodiscard]] bool asks_for_keys() const noexcept { return !entries_.empty(); }
  /// Whose key the request carries (Authorization: Bearer, X-Api-Key, or as the
  /// password of Authorization: Basic, which browsers send); nullopt where it is none of ours. All keys
  /// are compared, each in constant time.
  [[nodiscard]] std::optional<Caller> identify(const HttpRequest& request) const;
  [[nodiscard]] CallerLimits limits_of(const Caller& caller) const;

 private:
  struct Entry {
    Sha256 key_digest;  // so that all comparisons have the same length
    Caller caller;
    CallerLimits limits;
  };
  /// Of a line without its comment, not empty. Throws Error that says what is wrong with it.
  [[nodiscard]] static Entry parse_line(std::string_view line);
  /// Throws Error where it contradicts those that are there.
  void add(Entry entry);
  [[nodiscard]] const Entry* find(std::string_view key) const;

  std::vector<Entry> entries_;
};

}  // namespace headrace::server
