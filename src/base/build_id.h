#pragma once

#include <string>

namespace headrace {

/// The linker's fingerprint of this program (the ELF note GNU build-id) in hexadecimal: another build has another one.
/// Empty where the program carries none.
[[nodiscard]] std::string build_id();

}  // namespace headrace
