#pragma once

#include "quant/format.h"

/// The rows of the format table, each defined in the file of its format and listed in format.cc.
namespace headrace::quant {

extern const BlockFormat kF32Row, kF16Row, kBF16Row, kF8E4M3Row, kF8E5M2Row;
extern const BlockFormat kQ4_0Row, kQ4_1Row, kQ5_0Row, kQ5_1Row, kQ8_0Row;
extern const BlockFormat kQ2_KRow, kQ3_KRow, kQ4_KRow, kQ5_KRow, kQ6_KRow;
extern const BlockFormat kIQ1_SRow, kIQ1_MRow, kIQ2_XXSRow, kIQ2_XSRow, kIQ2_SRow, kIQ3_XXSRow, kIQ3_SRow;
extern const BlockFormat kIQ4_NLRow, kIQ4_XSRow, kTQ1_0Row, kTQ2_0Row, kMXFP4Row, kNVFP4Row;

}  // namespace headrace::quant
