// NVFP4: blocks of 64 elements, w = scale / 2 * level(code), a scale for each 16; levels: fp4_levels.h, doubled, hence
// / 2.
//
//   0                   4                          36
//   | 4 scales: UE4M3   | 4 x 8 bytes of nibbles   |   low nibble of byte i: code of element i of 16, high: of i + 8
//
// UE4M3: 4 bits of exponent (bias 7), 3 of fraction, no sign; 0x7f, the NaN of E4M3, means 0 in GGUF's definition.
// There is no unpacker: with a float for each 16 elements the block has no common scale to take out. Source: struct
// block_nvfp4 in ggml-common.h of ggml.
#include <algorithm>
#include <cmath>

#include "quant/block_bytes.h"
#include "quant/format_rows.h"
#include "quant/fp4_levels.h"

namespace headrace::quant {
namespace {

constexpr int kBytes = 36;
static_assert(kBytes == 64 / 16 + 64 / 2);
constexpr int kGreatestScale = 0x7e;

/// Half the UE4M3 number. Bit 7 is not looked at, but for 0xff not being 0x7f.
float half_scale(int code) noexcept {
  if (code == 0x7f) return 0;
  const int exponent = (code >> 3) & 15, fraction = code & 7;
  return exponent == 0 ? std::ldexp(static_cast<float>(fraction), -10)
                       : std::ldexp(static_cast<float>(8 + fraction), exponent - 11);
}

void decode(const std::byte* row, int64_t num_elems, float* out) noexcept {
  for (; num_elems > 0; num_elems -= 64, row += kBytes, out += 64) {
    for (int s = 0; s < 4; ++s) {
      const float scale = half_scale(load_u8(row, s));
      for (int i = 0; i < 8; ++i) {
        const int codes = load_u8(row + 4 + 8 * s, i);
        out[16 * s + i] = scale * static_cast<float>(kFp4Levels[codes & 15]);
        out[16 * s + i + 8] = scale * static_cast<float>(kFp4Levels[codes >> 4]);
      }
    }
  }
}

/// The least scale with which the levels cover the 16 elements.
void encode(const float* row, int64_t num_elems, std::byte* out) noexcept {
  for (; num_elems > 0; num_elems -= 64, row += 64, out += kBytes) {
    for (int s = 0; s < 4; ++s) {
      const float* x = row + 16 * s;
      float greatest = 0;
      for (int i = 0; i < 16; ++i) greatest = std::max(greatest, std::abs(x[i]));
      int code = 0;
      while (code < kGreatestScale && half_scale(code) * 12.0f < greatest) ++code;
      store_u8(out, s, code);
      const float step = half_scale(code);
      for (int i = 0; i < 8; ++i) {
        const int low = step > 0 ? nearest_fp4_code(x[i] / step) : 0;
        const int high = step > 0 ? nearest_fp4_code(x[i + 8] / step) : 0;
        store_u8(out + 4 + 8 * s, i, low | high << 4);
      }
    }
  }
}

}  // namespace

constinit const BlockFormat kNVFP4Row{.dtype = DType::kNVFP4,
                                      .scale_elems = 16,
                                      .q_min = 0,
                                      .q_max = 0,
                                      .has_min = false,
                                      .decode = decode,
                                      .encode = encode};

}  // namespace headrace::quant
