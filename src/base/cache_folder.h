#pragma once

#include <filesystem>
#include <optional>

namespace headrace {

/// Where fetched models and measured choices are kept: $HEADRACE_CACHE, else ~/.cache/headrace; nullopt where neither
/// variable is set. It need not exist.
[[nodiscard]] std::optional<std::filesystem::path> cache_folder();

}  // namespace headrace
