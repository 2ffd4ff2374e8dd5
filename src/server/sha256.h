#pragma once

#include <array>
#include <string_view>

namespace headrace::server {

using Sha256 = std::array<unsigned char, 32>;

/// Throws Error(kInternal) where OpenSSL does not compute it.
[[nodiscard]] Sha256 sha256(std::string_view text);

}  // namespace headrace::server
