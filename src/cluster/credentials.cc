#include "cluster/credentials.h"

#include "base/crypto.h"
#include "cluster/secret_file.h"

namespace headrace::cluster {
namespace {

constexpr size_t kIdentityBytes = 16;

}  // namespace

Credentials credentials_of(std::string role, const std::string& secret_file) {
  Credentials credentials{.role = std::move(role), .identity = random_hex(kIdentityBytes)};
  if (!secret_file.empty()) credentials.secret = read_secret_file(secret_file);
  return credentials;
}

}  // namespace headrace::cluster
