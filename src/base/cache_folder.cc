#include "base/cache_folder.h"

#include <cstdlib>

namespace headrace {

std::optional<std::filesystem::path> cache_folder() {
  if (const char* cache = std::getenv("HEADRACE_CACHE"); cache != nullptr && *cache != '\0') return cache;
  if (const char* home = std::getenv("HOME"); home != nullptr && *home != '\0') {
    return std::filesystem::path(home) / ".cache/headrace";
  }
  return std::nullopt;
}

}  // namespace headrace
