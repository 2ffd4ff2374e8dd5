#include "cluster/data_keys.h"

#include <openssl/evp.h>
#include <openssl/rand.h>

#include <array>

#include "base/ascii_text.h"
#include "base/error.h"

namespace headrace::cluster {
namespace {

constexpr size_t kKeyBytes = 32;
constexpr size_t kIdBytes = 16;

}  // namespace

std::string random_hex(size_t bytes) {
  std::vector<unsigned char> random(bytes);
  if (RAND_bytes(random.data(), static_cast<int>(bytes)) != 1)
    throw Error(ErrorCode::kInternal, "the system has no random numbers for keys");
  return hex_text(random);
}

std::string data_key_id(std::string_view key) {
  const std::string text = cat("headrace data key id:", key);
  std::array<unsigned char, 32> digest{};
  if (EVP_Digest(text.data(), text.size(), digest.data(), nullptr, EVP_sha256(), nullptr) != 1)
    throw Error(ErrorCode::kInternal, "SHA-256 is not to be had from OpenSSL");
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
