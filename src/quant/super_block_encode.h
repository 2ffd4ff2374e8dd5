#pragma once

#include "quant/encode_rounding.h"
#include "quant/format.h"

/// Encoding of 256 elements with scales of scales, short of packing the bits. All roundings of scales go up, so the
/// grid of each sub-block covers its elements and the error is half a step; a search for better scales would lower the
/// mean error further, which files made for use deserve and test matrices do not need.
namespace headrace::quant {

/// Formats with minima: w = d * scale * q - dmin * min, q in [0, q_max], scale and min in [0, scale_max].
/// Error at most half a step; a step d * scale is at most d more than (greatest + dmin * min) / q_max of the sub-block.
void quantise_with_minima(const float* x, int scale_elems, int q_max, int scale_max, UnpackedBlock256& out) noexcept;

/// Signed formats: w = d * scale * q, q in [q_lo, q_hi], |scale| in [0, scale_max]. `nearest_level(v)` gives the level
/// nearest to v. Error at most half the widest gap between levels times the step d * |scale|, which is at most d more
/// than max|x| / min(-q_lo, q_hi) of the sub-block.
template <class NearestLevel>
void quantise_signed(const float* x, int scale_elems, int q_lo, int q_hi, int scale_max, NearestLevel nearest_level,
                     UnpackedBlock256& out) noexcept {
  out = {};
  float want[16] = {};  // the signed scale at which the sub-block just fits
  float widest = 0;
  const int num_subs = 256 / scale_elems;
  for (int s = 0; s < num_subs; ++s) {
    const Range range = range_of(x + s * scale_elems, scale_elems);
    const float up = std::max(range.hi, 0.0f), down = std::max(-range.lo, 0.0f);
    const auto lo = static_cast<float>(-q_lo), hi = static_cast<float>(q_hi);
    const float upright = std::max(up / hi, down / lo), flipped = std::max(up / lo, down / hi);
    want[s] = flipped < upright ? -flipped : upright;  // the side with more levels takes the longer side of the block
    widest = std::max(widest, std::abs(want[s]));
  }
  out.d = f16_at_least(widest / static_cast<float>(scale_max));
  if (out.d == 0) return;
  for (int s = 0; s < num_subs; ++s) {
    const int magnitude = ceil_to(std::abs(want[s]) / out.d, 0, scale_max);
    out.scale[s] = static_cast<int8_t>(want[s] < 0 ? -magnitude : magnitude);
    if (magnitude == 0) continue;
    const float step = out.d * static_cast<float>(out.scale[s]);
    for (int i = s * scale_elems; i < (s + 1) * scale_elems; ++i) {
      out.q[i] = static_cast<int8_t>(nearest_level(x[i] / step));
    }
  }
}

}  // namespace headrace::quant
