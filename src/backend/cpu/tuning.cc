#include "backend/cpu/tuning.h"

namespace headrace {

std::string_view row_class_name(RowClass rows) noexcept {
  constexpr std::array<std::string_view, kNumRowClasses> kNames{"1", "2-4", "5-8", "9-16", "17-64", "65+"};
  return kNames[static_cast<size_t>(rows)];
}

}  // namespace headrace
