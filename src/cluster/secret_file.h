#pragma once

#include <cstddef>
#include <string>

namespace headrace::cluster {

inline constexpr size_t kMinSecretBytes = 16;

/// The shared secret in a file, without blanks and line ends around it. Throws Error: kNotFound, or kInvalidArgument
/// where it is shorter than kMinSecretBytes, longer than 4 KiB, or other users of the machine may read or write it.
[[nodiscard]] std::string read_secret_file(const std::string& path);

}  // namespace headrace::cluster
