#include "server/key_ring.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <utility>

#include "base/ascii_text.h"
#include "base/cat.h"
#include "base/error.h"
#include "base/log.h"

namespace headrace::server {
namespace {

constexpr std::string_view kBlanks = " \t\r";

[[noreturn]] void bad_line(std::string what) { throw Error(ErrorCode::kInvalidArgument, std::move(what)); }

/// Takes the next word from `line`; empty at its end or before a comment.
std::string_view take_word(std::string_view& line) {
  line.remove_prefix(std::min(line.find_first_not_of(kBlanks), line.size()));
  if (line.starts_with('#')) line = {};
  const std::string_view word = line.substr(0, line.find_first_of(kBlanks));
  line.remove_prefix(word.size());
  return word;
}

template <class Number>
Number positive(std::string_view name, std::string_view text) {
  Number value = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (fault != std::errc() || end != text.data() + text.size() || !(value > 0) || value > Number{1'000'000'000}) {
    bad_line(cat(name, "= is no number above 0"));
  }
  return value;
}

/// What follows the scheme ("bearer") in an Authorization header; empty for any other scheme.
std::string_view credentials(std::string_view header, std::string_view wanted_scheme) {
  const size_t scheme = header.find(' ');
  if (scheme == std::string_view::npos || ascii_lower(header.substr(0, scheme)) != wanted_scheme) return {};
  return ascii_trimmed(header.substr(scheme));
}

/// The password of "Basic base64(USER:PASSWORD)", in which browsers send a key; empty where it is none.
std::string basic_password(std::string_view header) {
  const std::string_view encoded = credentials(header, "basic");
  if (encoded.empty() || encoded.size() % 4 != 0 || encoded.size() > 4096) return {};
  std::string text(encoded.size() / 4 * 3, 0);
  const int size =
      EVP_DecodeBlock(reinterpret_cast<unsigned char*>(text.data()),
                      reinterpret_cast<const unsigned char*>(encoded.data()), static_cast<int>(encoded.size()));
  if (size < 0) return {};
  const size_t padding = encoded.size() - std::min(encoded.find('='), encoded.size());
  text.resize(static_cast<size_t>(size) - std::min(padding, static_cast<size_t>(size)));
  const size_t colon = text.find(':');
  return colon == std::string::npos ? std::string() : text.substr(colon + 1);
}

void warn_if_public(const std::string& file) {
  struct stat status {};
  if (stat(file.c_str(), &status) == 0 && S_ISREG(status.st_mode) && (status.st_mode & S_IROTH) != 0) {
    log_warn("{}: every user of this machine can read the keys; chmod o-rwx it", printable(file, 4096));
  }
}

}  // namespace

KeyRing::Entry KeyRing::parse_line(std::string_view line) {
  const std::string_view key = take_word(line);
  if (!std::ranges::all_of(key, [](char c) { return c > ' ' && c <= '~'; })) {
    bad_line("the key holds characters that no HTTP header can carry");
  }
  Entry entry{.key_digest = sha256(key), .caller = {}, .limits = {}};
  for (std::string_view word = take_word(line); !word.empty(); word = take_word(line)) {
    const size_t equals = word.find('=');
    const std::string_view name = word.substr(0, equals);
    const std::string_view value = equals == std::string_view::npos ? std::string_view() : word.substr(equals + 1);
    if (word == "admin" || word == "metrics") {
      (word == "admin" ? entry.caller.is_admin : entry.caller.reads_metrics) = true;
      continue;
    }
    // An unknown word is not shown: it may be another key.
    constexpr std::string_view kNames[] = {"name", "tenant", "salt", "concurrency", "rpm"};
    if (equals == std::string_view::npos || std::ranges::find(kNames, name) == std::end(kNames)) {
      bad_line("after the key, expected only name=, tenant=, salt=, concurrency=, rpm=, admin and metrics");
    }
    if (value.empty()) bad_line(cat(name, "= has no value"));
    if (name == "name") entry.caller.name = value;
    if (name == "tenant") entry.caller.tenant = value;
    if (name == "salt") entry.caller.cache_salt = cat("salt=", value);
    if (name == "concurrency") entry.limits.concurrent_requests = positive<int32_t>(name, value);
    if (name == "rpm") entry.limits.requests_per_minute = positive<double>(name, value);
  }
  Caller& caller = entry.caller;
  if (caller.name.empty()) {
    caller.name = cat("key-", hex_text(std::span(entry.key_digest).first(4)));
  }
  if (caller.tenant.empty()) caller.tenant = caller.name;
  // With these prefixes no salt= equals what stands for another tenant.
  if (caller.cache_salt.empty()) caller.cache_salt = cat("tenant=", caller.tenant);
  return entry;
}

void KeyRing::add(Entry entry) {
  for (const Entry& other : entries_) {
    if (other.key_digest == entry.key_digest) bad_line(cat("the same key as that of \"", other.caller.name, "\""));
    if (other.caller.name != entry.caller.name) continue;
    if (other.limits != entry.limits || other.caller.tenant != entry.caller.tenant ||
        other.caller.cache_salt != entry.caller.cache_salt || other.caller.is_admin != entry.caller.is_admin ||
        other.caller.reads_metrics != entry.caller.reads_metrics) {
      bad_line(cat("another key of \"", entry.caller.name, "\" has other settings; give them the same, or two names"));
    }
  }
  entries_.push_back(std::move(entry));
}

KeyRing KeyRing::load(const std::string& file) {
  std::ifstream in(file);
  if (!in) throw LoadError(file, "cannot be read", ErrorCode::kNotFound);
  warn_if_public(file);
  KeyRing ring;
  std::string line;
  for (int number = 1; std::getline(in, line); ++number) {
    std::string_view rest = line;
    if (take_word(rest).empty()) continue;
    try {
      ring.add(parse_line(line));
    } catch (const Error& error) {
      throw LoadError(file, cat("line ", number, ": ", error.message()), error.code());
    }
  }
  if (in.bad()) throw LoadError(file, "cannot be read to its end", ErrorCode::kNotFound);
  if (!ring.asks_for_keys()) {
    throw LoadError(file, "holds no key; put one on each line, or leave the file out", ErrorCode::kInvalidArgument);
  }
  return ring;
}

const KeyRing::Entry* KeyRing::find(std::string_view key) const {
  const Sha256 digest = sha256(key);
  const Entry* found = nullptr;
  for (const Entry& entry : entries_) {
    if (CRYPTO_memcmp(entry.key_digest.data(), digest.data(), digest.size()) == 0) found = &entry;
  }
  return found;
}

std::optional<Caller> KeyRing::identify(const HttpRequest& request) const {
  if (!asks_for_keys()) return Caller{.is_admin = true};
  const std::string_view authorization = request.header("authorization");
  const std::string password = basic_password(authorization);
  for (const std::string_view key :
       {credentials(authorization, "bearer"), std::string_view(password), request.header("x-api-key")}) {
    if (key.empty()) continue;
    if (const Entry* const entry = find(key)) return entry->caller;
  }
  return std::nullopt;
}

CallerLimits KeyRing::limits_of(const Caller& caller) const {
  const auto found = std::ranges::find(entries_, caller.name, [](const Entry& entry) { return entry.caller.name; });
  return found == entries_.end() ? CallerLimits() : found->limits;
}

}  // namespace headrace::server
