// Q5_K: blocks of 256 elements, w = d * scale * code - dmin * min, a scale and a min for each 32.
//
//   0        2           4                               16                 48                              176
//   | d: f16 | dmin: f16 | 12 bytes: 8 scales, 8 minima  | 32 bytes: bit 4  | 128 bytes: bits 0 to 3        |
//
// Scales and minima: scales_6bit.h. Bits 0 to 3: order of four_bits_of(). Bit 4 of element i: bit i / 32 of byte i
// % 32. Source: struct block_q5_K in ggml-common.h of ggml.
#include <algorithm>

#include "quant/block_bytes.h"
#include "quant/block_decode.h"
#include "quant/format_rows.h"
#include "quant/scales_6bit.h"
#include "quant/super_block_encode.h"

namespace headrace::quant {
namespace {

constexpr int kBytes = 176;
static_assert(kBytes == 2 + 2 + 12 + 256 / 8 + 256 / 2);

void unpack(const std::byte* block, UnpackedBlock256& out) noexcept {
  out = {};
  out.d = load_f16(block);
  out.dmin = load_f16(block + 2);
  load_scales_6bit(block + 4, out);
  for (int c = 0; c < 4; ++c) load_nibbles<32>(block + 48 + 32 * c, out.q + 64 * c);
  uint8_t high[32];
  std::memcpy(high, block + 16, sizeof high);
  for (int s = 0; s < 8; ++s) {
    for (int i = 0; i < 32; ++i) out.q[32 * s + i] = static_cast<int8_t>(out.q[32 * s + i] | (high[i] >> s & 1) << 4);
  }
}

void pack(const UnpackedBlock256& block, std::byte* out) noexcept {
  std::fill_n(out, kBytes, std::byte{0});
  store_f16(out, block.d);
  store_f16(out + 2, block.dmin);
  store_scales_6bit(block, out + 4);
  for (int i = 0; i < 256; ++i) {
    add_bits(out + 48, four_bits_of(i).byte, (block.q[i] & 15) << four_bits_of(i).shift);
    add_bits(out + 16, i % 32, (block.q[i] >> 4) << (i / 32));
  }
}

void encode(const float* row, int64_t num_elems, std::byte* out) noexcept {
  UnpackedBlock256 block;
  for (; num_elems > 0; num_elems -= 256, row += 256, out += kBytes) {
    quantise_with_minima(row, 32, 31, 63, block);
    pack(block, out);
  }
}

}  // namespace

constinit const BlockFormat kQ5_KRow{.dtype = DType::kQ5_K,
                                     .scale_elems = 32,
                                     .q_min = 0,
                                     .q_max = 31,
                                     .has_min = true,
                                     .decode = decode_blocks256<unpack, kBytes, 32, Minimum::kUsed>,
                                     .encode = encode,
                                     .unpack256 = unpack};

}  // namespace headrace::quant
