#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

namespace headrace {

using Sha256 = std::array<unsigned char, 32>;

/// Throws Error(kInternal) where OpenSSL does not compute it.
[[nodiscard]] Sha256 sha256(std::string_view text);

/// Random bytes that nobody can guess, in hexadecimal. Throws Error(kInternal) where the system has none.
[[nodiscard]] std::string random_hex(size_t bytes);

}  // namespace headrace
