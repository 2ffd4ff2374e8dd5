#include "cluster/data_keys.h"

#include <span>

#include "base/ascii_text.h"
#include "base/cat.h"
#include "base/crypto.h"

namespace headrace::cluster {
namespace {

constexpr size_t kKeyBytes = 32;
constexpr size_t kIdBytes = 16;

}  // namespace

std::string data_key_id(std::string_view key) {
  const Sha256 digest = sha256(cat("headrace data key id:", key));
  return hex_text(std::span(digest).first(kIdBytes));
}

std::string DataKeys::issue(const std::string& purpose) {
  std::string key = random_hex(kKeyBytes);
  std::string id = data_key_id(key);
  const Deadline now = now_();
  const std::chrono::duration<double> lifetime(kLifetimeSeconds);
  const std::lock_guard lock(mutex_);
  std::erase_if(issued_, [&](const auto& entry) { return entry.second.expires <= now; });
  const Deadline expires = now + std::chrono::duration_cast<Deadline::duration>(lifetime);
  issued_.emplace(std::move(id), Issued{.key = key, .purpose = purpose, .expires = expires});
  return key;
}

std::optional<std::string> DataKeys::take(const std::string& id, const std::string& purpose) {
  const Deadline now = now_();
  const std::lock_guard lock(mutex_);
  const auto node = issued_.extract(id);
  if (node.empty() || node.mapped().expires <= now || node.mapped().purpose != purpose) return std::nullopt;
  return node.mapped().key;
}

}  // namespace headrace::cluster
