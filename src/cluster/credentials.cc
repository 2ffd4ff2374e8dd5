#include "cluster/credentials.h"

#include "cluster/secret_file.h"

namespace headrace::cluster {

Credentials credentials_of(std::string role, const std::string& secret_file) {
  Credentials credentials{.role = std::move(role)};
  if (!secret_file.empty()) credentials.secret = read_secret_file(secret_file);
  return credentials;
}

}  // namespace headrace::cluster
