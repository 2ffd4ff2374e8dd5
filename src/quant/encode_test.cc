#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <map>

#include "quant/format.h"
#include "quant/test_rows.h"

namespace headrace::quant {
namespace {

/// Rounding a scale to f16, up or to nearest: relative in the normal range, absolute below it.
double f16_up(double scale) { return scale * (1 + 0x1p-10) + 0x1p-24; }
double f16_half_ulp(double value) { return std::abs(value) * 0x1p-11 + 0x1p-25; }

struct Extent {
  double lo, hi;
  double greatest() const { return std::max(std::abs(lo), std::abs(hi)); }
};
Extent extent_of(std::span<const float> x) {
  const auto [lo, hi] = std::minmax_element(x.begin(), x.end());
  return {*lo, *hi};
}
std::span<const float> sub_block(std::span<const float> x, int num, int index) {
  return x.subspan(static_cast<size_t>(num * index), static_cast<size_t>(num));
}

/// Greatest error allowed to each sub-block of a block `x`, from the encoder's contract alone; index: element.
using Bound = std::function<double(std::span<const float> x, size_t i)>;

/// One scale; greatest magnitude on code `levels`, and up to `steps` of error, by half a step or by the code that the
/// other side lacks. The f16 scale moves the values of all codes.
Bound one_scale(double levels, double steps) {
  return [=](std::span<const float> x, size_t) {
    const double d = extent_of(x).greatest() / levels;
    return steps * d + levels * f16_half_ulp(d);
  };
}

/// One scale and the minimum, both rounded to f16.
Bound scale_and_minimum(double levels) {
  return [=](std::span<const float> x, size_t) {
    const auto [lo, hi] = extent_of(x);
    const double d = (hi - lo) / levels;
    return 0.5 * d + levels * f16_half_ulp(d) + f16_half_ulp(lo);
  };
}

/// Sub-scales rounded up to multiples of d: a step is at most `want` + d. q_side: codes on the shorter side.
Bound signed_sub_scales(int scale_elems, double q_side, double scale_max, double half_gap) {
  return [=](std::span<const float> x, size_t i) {
    const double d = f16_up(extent_of(x).greatest() / q_side / scale_max);
    const double want = extent_of(sub_block(x, scale_elems, static_cast<int>(i) / scale_elems)).greatest() / q_side;
    return half_gap * (want + d);
  };
}

/// Minima rounded up to multiples of dmin, then scales up to multiples of d: half of the step that results.
Bound sub_scales_and_minima(int scale_elems, double q_max, double scale_max) {
  return [=](std::span<const float> x, size_t i) {
    const double dmin = f16_up(std::max(0.0, -extent_of(x).lo) / scale_max);
    const auto want = [&](int sub) {
      const auto [lo, hi] = extent_of(sub_block(x, scale_elems, sub));
      return std::max(0.0, hi + (lo < 0 ? -lo + dmin : 0)) / q_max;
    };
    double widest = 0;
    for (int sub = 0; sub < 256 / scale_elems; ++sub) widest = std::max(widest, want(sub));
    return 0.5 * (want(static_cast<int>(i) / scale_elems) + f16_up(widest / scale_max));
  };
}

const std::map<DType, Bound> kBounds{
    {DType::kF32, [](auto, size_t) { return 0.0; }},
    {DType::kF16, [](auto x, size_t i) { return f16_half_ulp(x[i]); }},
    {DType::kBF16, [](auto x, size_t i) { return std::abs(x[i]) * 0x1p-8; }},
    {DType::kQ4_0, one_scale(8, 1)},  // code 8 does not exist: a whole step
    {DType::kQ5_0, one_scale(16, 1)},
    {DType::kQ8_0, one_scale(127, 0.5)},
    {DType::kTQ1_0, one_scale(1, 0.5)},
    {DType::kTQ2_0, one_scale(1, 0.5)},
    {DType::kQ4_1, scale_and_minimum(15)},
    {DType::kQ5_1, scale_and_minimum(31)},
    {DType::kQ2_K, sub_scales_and_minima(16, 3, 15)},
    {DType::kQ4_K, sub_scales_and_minima(32, 15, 63)},
    {DType::kQ5_K, sub_scales_and_minima(32, 31, 63)},
    {DType::kQ3_K, signed_sub_scales(16, 3, 31, 0.5)},
    {DType::kQ6_K, signed_sub_scales(16, 31, 127, 0.5)},
    {DType::kIQ4_XS, signed_sub_scales(32, 113, 31, 12)},  // widest gap of the levels: 89 to 113
    {DType::kIQ4_NL, [](auto x, size_t) { return 12 * f16_up(extent_of(x).greatest() / 113); }},
    {DType::kMXFP4, [](auto x, size_t) { return extent_of(x).greatest() / 4; }},  // 8 cut to 6; gaps are less
    // The scale is the next UE4M3 number (at most 9/8 of it, or 2^-9 more below the normal range), half the widest
    // gap 1.
    {DType::kNVFP4,
     [](auto x, size_t i) {
       return std::max(extent_of(sub_block(x, 16, static_cast<int>(i) / 16)).greatest() / 6 * 9 / 8, 0x1p-9);
     }},
};

TEST(Encode, ErrorWithinTheBoundOfTheFormat) {
  for (const BlockFormat* format : all_formats()) {
    if (!format->encode) continue;
    const DTypeInfo& info = dtype_info(format->dtype);
    SCOPED_TRACE(info.name);
    ASSERT_TRUE(kBounds.contains(format->dtype));
    const Bound& bound = kBounds.at(format->dtype);
    int kind = 0;
    double closest = 0;  // error over bound
    for (const std::vector<float>& row : rows_of_all_kinds(7)) {
      std::vector<std::byte> blocks(row_bytes(*format, 512));
      std::vector<float> decoded(512);
      format->encode(row.data(), 512, blocks.data());
      format->decode(blocks.data(), 512, decoded.data());
      const auto block_elems = static_cast<size_t>(info.block_elems);
      for (size_t i = 0; i < 512; ++i) {
        const auto block = std::span(row).subspan(i / block_elems * block_elems, block_elems);
        // Quotients, products and sums in f32, fewer than 8 roundings each of at most 2^-24 of the greatest magnitude.
        const double slack = format->dtype == DType::kF32 ? 0 : 8 * 0x1p-24 * extent_of(block).greatest();
        const double error = std::abs(static_cast<double>(decoded[i]) - row[i]);
        const double allowed = bound(block, i % block_elems) + slack;
        if (allowed > 0) closest = std::max(closest, error / allowed);
        ASSERT_LE(error, allowed) << "kind " << kind << " element " << i << ": " << row[i] << " became " << decoded[i];
      }
      ++kind;
    }
    EXPECT_TRUE(format->dtype == DType::kF32 || closest > 0.5) << "the bound is too wide to find an error";
  }
}

TEST(Encode, SameBytesWhateverWasThereBefore) {
  for (const BlockFormat* format : all_formats()) {
    if (!format->encode) continue;
    SCOPED_TRACE(dtype_name(format->dtype));
    for (const std::vector<float>& row : rows_of_all_kinds(8)) {
      const size_t num_bytes = row_bytes(*format, 512);
      std::vector<std::byte> first(num_bytes, std::byte{0}), second(num_bytes + 3, std::byte{0xff});
      format->encode(row.data(), 512, first.data());
      format->encode(row.data(), 256, second.data() + 1);  // unaligned, in two parts
      format->encode(row.data() + 256, 256, second.data() + 1 + row_bytes(*format, 256));
      EXPECT_EQ(std::memcmp(first.data(), second.data() + 1, num_bytes), 0);
      EXPECT_EQ(second.front(), std::byte{0xff});
      EXPECT_EQ(second.back(), std::byte{0xff});
    }
  }
}

// Not meaningful, but neither undefined; huge finite input stays finite where the scale is limited to f16.
TEST(Encode, ExtremeInputIsHarmless) {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  for (const BlockFormat* format : all_formats()) {
    if (!format->encode) continue;
    SCOPED_TRACE(dtype_name(format->dtype));
    for (const float special : {inf, -inf, nan, 3e38f, -3e38f, 1e-45f, -0.0f}) {
      for (const size_t stride : {1u, 7u, 64u}) {
        std::vector<float> row(512, 0.5f);
        for (size_t i = 0; i < 512; i += stride) row[i] = special;
        std::vector<std::byte> blocks(row_bytes(*format, 512));
        std::vector<float> decoded(512);
        format->encode(row.data(), 512, blocks.data());
        format->decode(blocks.data(), 512, decoded.data());
        const bool is_plain = dtype_info(format->dtype).block_elems == 1;
        EXPECT_TRUE(is_plain || std::all_of(decoded.begin(), decoded.end(), [](float w) { return std::isfinite(w); }));
      }
    }
  }
}

}  // namespace
}  // namespace headrace::quant
