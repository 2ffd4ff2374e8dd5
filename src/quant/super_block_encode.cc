#include "quant/super_block_encode.h"

namespace headrace::quant {

void quantise_with_minima(const float* x, int scale_elems, int q_max, int scale_max, UnpackedBlock256& out) noexcept {
  out = {};
  Range ranges[16] = {};
  float deepest = 0;
  const int num_subs = 256 / scale_elems;
  for (int s = 0; s < num_subs; ++s) {
    ranges[s] = range_of(x + s * scale_elems, scale_elems);
    deepest = std::max(deepest, -ranges[s].lo);  // minima are subtracted: a sub-block above 0 has none
  }
  out.dmin = f16_at_least(deepest / static_cast<float>(scale_max));

  float offset[16] = {}, want[16] = {};
  float widest = 0;
  for (int s = 0; s < num_subs; ++s) {
    if (out.dmin > 0) out.min[s] = static_cast<uint8_t>(ceil_to(-ranges[s].lo / out.dmin, 0, scale_max));
    offset[s] = out.dmin * static_cast<float>(out.min[s]);
    want[s] = std::max(ranges[s].hi + offset[s], 0.0f) / static_cast<float>(q_max);
    widest = std::max(widest, want[s]);
  }
  out.d = f16_at_least(widest / static_cast<float>(scale_max));
  if (out.d == 0) return;
  for (int s = 0; s < num_subs; ++s) {
    out.scale[s] = static_cast<int8_t>(ceil_to(want[s] / out.d, 0, scale_max));
    if (out.scale[s] == 0) continue;
    const float step = out.d * static_cast<float>(out.scale[s]);
    for (int i = s * scale_elems; i < (s + 1) * scale_elems; ++i) {
      out.q[i] = static_cast<int8_t>(round_to((x[i] + offset[s]) / step, 0, q_max));
    }
  }
}

}  // namespace headrace::quant
