#include "base/crypto.h"

#include <openssl/evp.h>
#include <openssl/rand.h>

#include <vector>

#include "base/ascii_text.h"
#include "base/error.h"

namespace headrace {

Sha256 sha256(std::string_view text) {
  Sha256 digest{};
  if (EVP_Digest(text.data(), text.size(), digest.data(), nullptr, EVP_sha256(), nullptr) != 1) {
    throw Error(ErrorCode::kInternal, "SHA-256 is not to be had from OpenSSL");
  }
  return digest;
}

std::string random_hex(size_t bytes) {
  std::vector<unsigned char> random(bytes);
  if (RAND_bytes(random.data(), static_cast<int>(bytes)) != 1) {
    throw Error(ErrorCode::kInternal, "no random numbers from the system");
  }
  return hex_text(random);
}

}  // namespace headrace
