#include "files/gguf_format.h"

#include <array>

namespace headrace {
namespace {

struct TypeRow {
  std::string_view name;
  uint32_t size;  ///< 0: depends on the value
};
// In the order of GgufType.
constexpr std::array<TypeRow, 13> kTypes{{{"uint8", 1},
                                          {"int8", 1},
                                          {"uint16", 2},
                                          {"int16", 2},
                                          {"uint32", 4},
                                          {"int32", 4},
                                          {"float32", 4},
                                          {"bool", 1},
                                          {"string", 0},
                                          {"array", 0},
                                          {"uint64", 8},
                                          {"int64", 8},
                                          {"float64", 8}}};

}  // namespace

std::string_view gguf_type_name(GgufType type) noexcept {
  const auto index = static_cast<size_t>(type);
  return index < kTypes.size() ? kTypes[index].name : "unknown";
}

std::optional<uint32_t> gguf_type_size(GgufType type) noexcept {
  const auto index = static_cast<size_t>(type);
  if (index >= kTypes.size() || kTypes[index].size == 0) return std::nullopt;
  return kTypes[index].size;
}

}  // namespace headrace
