#pragma once

#include <string>

#include "cluster/handshake.h"

namespace headrace::cluster {

/// What a machine in that role brings to handshakes, under a new identity; an empty path: no secret. Throws as
/// read_secret_file does.
[[nodiscard]] Credentials credentials_of(std::string role, const std::string& secret_file);

}  // namespace headrace::cluster
