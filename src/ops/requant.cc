#include "ops/requant.h"

#include <cmath>

namespace headrace {
namespace {

constexpr float kMostW8 = 127.0f;

/// To the nearest integer, ties to even; 0 for what is not a number. |v| < 2^17 wherever it is one (requant.h).
int32_t round_to_int(float v) noexcept { return std::isnan(v) ? 0 : static_cast<int32_t>(std::nearbyint(v)); }

}  // namespace

int64_t requant_units(int64_t k) noexcept { return (k + kUnitK - 1) / kUnitK; }

int64_t requant_group_bytes(const InterleavedFormat& format, int64_t k) noexcept {
  return interleaved_group_bytes(format, k) + requant_units(k) * kRequantScaleBytes;
}

float requant_scale(const InterleavedFormat& format, const NeuronUnit& unit, int blocks) noexcept {
  float most = 0;
  const auto take = [&most](float magnitude) {
    if (!(magnitude <= most)) most = magnitude;  // keeps what is not a number: nothing compares with it
  };
  const bool small_blocks = format.block_elems == kSlabK;
  const int sub_blocks = small_blocks ? blocks : kUnitK / format.scale_elems;
  for (int s = 0; s < sub_blocks && !std::isnan(most); ++s) {
    const float step = small_blocks ? unit.d[s] : unit.d[0] * static_cast<float>(unit.scale[s]);
    if (!format.has_min) {
      take(std::fabs(step) * static_cast<float>(is_high_product(format) ? 128 : format.code_offset));
      continue;
    }
    const float base = small_blocks ? unit.m[s] : -(unit.m[0] * static_cast<float>(unit.min[s]));
    take(std::fabs(base));
    if (!std::isnan(most)) take(std::fabs(step * static_cast<float>((1 << format.code_bits) - 1) + base));
  }
  return most / kMostW8;
}

void requant_unit(const InterleavedFormat& format, const NeuronUnit& unit, int blocks, float r, int8_t* w8) noexcept {
  const bool small_blocks = format.block_elems == kSlabK;
  const float inv = (is_high_product(format) ? 32768.0f : 256.0f) / r;
  const float d = unit.d[0] * inv, dmin = format.has_min ? unit.m[0] * inv : 0.0f;
  for (int i = 0; i < blocks * format.block_elems; ++i) {
    const int s = i / format.scale_elems;
    const int32_t step = round_to_int(small_blocks ? unit.d[s] * inv : static_cast<float>(unit.scale[s]) * d);
    if (is_high_product(format)) {
      w8[i] = static_cast<int8_t>((unit.q[i] * step + (1 << 14)) >> 15);
      continue;
    }
    int32_t base = 128;
    if (format.has_min) {
      base += small_blocks ? round_to_int(unit.m[s] * inv) : -round_to_int(static_cast<float>(unit.min[s]) * dmin);
    }
    w8[i] = static_cast<int8_t>(static_cast<int16_t>(unit.q[i] * step + base) >> 8);
  }
}

}  // namespace headrace
