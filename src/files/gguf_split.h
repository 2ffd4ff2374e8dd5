#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace headrace {

/// How the names of a split model's files end: "-00001-of-00003.gguf" for index 0 of 3.
[[nodiscard]] std::string split_suffix(int64_t index, int64_t count);

/// Whether a name ends like that of a later file of a split set: "-00002-of-00003.gguf".
[[nodiscard]] bool is_later_split(std::string_view name);

/// The files of the split set of which `first` is the first, by their names; `first` alone where it is no such.
[[nodiscard]] std::vector<std::string> split_files(const std::string& first);

}  // namespace headrace
