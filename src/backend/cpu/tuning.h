#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string_view>
#include <tuple>

#include "base/isa.h"
#include "ops/weight_layout.h"

namespace headrace {

/// Numbers of rows of a step between which the fastest way to multiply changes.
enum class RowClass : uint8_t { k1, k2To4, k5To8, k9To16, k17To64, k65Up };
inline constexpr int kNumRowClasses = 6;
[[nodiscard]] constexpr RowClass row_class(int64_t rows) noexcept {
  constexpr std::array kLast{1, 4, 8, 16, 64};
  size_t i = 0;
  while (i < kLast.size() && rows > kLast[i]) ++i;
  return static_cast<RowClass>(i);
}
/// "1", "2-4", ... "65+"
[[nodiscard]] std::string_view row_class_name(RowClass rows) noexcept;

/// How products of one kind are run: never what they give, as all candidates are bit-equal.
struct MatmulTuning {
  Isa isa = Isa::kAmx;  ///< highest class of kernel used
  int32_t grain = 1;    ///< a thread's range of neurons is at least so many times the usual one
  bool operator==(const MatmulTuning&) const = default;
};

/// What was measured to be faster than the static choice, by weight type, layout and rows; what is not listed is left
/// as it is.
using CpuTuning = std::map<std::tuple<DType, WeightLayout, RowClass>, MatmulTuning>;

}  // namespace headrace
