#include "server/sha256.h"

#include <openssl/evp.h>

#include "base/error.h"

namespace headrace::server {

Sha256 sha256(std::string_view text) {
  Sha256 digest{};
  if (EVP_Digest(text.data(), text.size(), digest.data(), nullptr, EVP_sha256(), nullptr) != 1) {
    throw Error(ErrorCode::kInternal, "SHA-256 is not to be had from OpenSSL");
  }
  return digest;
}

}  // namespace headrace::server
