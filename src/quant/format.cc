#include "quant/format.h"

#include <array>

#include "quant/format_rows.h"

namespace headrace {
namespace {

constexpr std::array kRows{
    &quant::kF32Row,     &quant::kF16Row,   &quant::kBF16Row,    &quant::kF8E4M3Row, &quant::kF8E5M2Row,
    &quant::kQ4_0Row,    &quant::kQ4_1Row,  &quant::kQ5_0Row,    &quant::kQ5_1Row,   &quant::kQ8_0Row,
    &quant::kQ2_KRow,    &quant::kQ3_KRow,  &quant::kQ4_KRow,    &quant::kQ5_KRow,   &quant::kQ6_KRow,
    &quant::kIQ1_SRow,   &quant::kIQ1_MRow, &quant::kIQ2_XXSRow, &quant::kIQ2_XSRow, &quant::kIQ2_SRow,
    &quant::kIQ3_XXSRow, &quant::kIQ3_SRow, &quant::kIQ4_NLRow,  &quant::kIQ4_XSRow, &quant::kTQ1_0Row,
    &quant::kTQ2_0Row,   &quant::kMXFP4Row, &quant::kNVFP4Row,
};

}  // namespace

const BlockFormat* find_format(DType dtype) noexcept {
  for (const BlockFormat* row : kRows) {
    if (row->dtype == dtype) return row;
  }
  return nullptr;
}

std::span<const BlockFormat* const> all_formats() noexcept { return kRows; }

}  // namespace headrace
