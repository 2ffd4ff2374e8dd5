// Q4_K: blocks of 256 elements, w = d * scale * code - dmin * min, a scale and a min for each 32.
//
//   0        2           4                               16                        144
//   | d: f16 | dmin: f16 | 12 bytes: 8 scales, 8 minima  | 128 bytes of nibbles    |
//
// Scales and minima: scales_6bit.h. Order of the codes: four_bits_of().
// Source: struct block_q4_K in ggml-common.h of ggml.
#include <algorithm>

#include "quant/block_bytes.h"
#include "quant/block_decode.h"
#include "quant/format_rows.h"
#include "quant/scales_6bit.h"
#include "quant/super_block_encode.h"

namespace headrace::quant {
namespace {

constexpr int kBytes = 144;
static_assert(kBytes == 2 + 2 + 12 + 256 / 2);

void unpack(const std::byte* block, UnpackedBlock256& out) noexcept {
  out = {};
  out.d = load_f16(block);
  out.dmin = load_f16(block + 2);
  load_scales_6bit(block + 4, out);
  for (int c = 0; c < 4; ++c) load_nibbles<32>(block + 16 + 32 * c, out.q + 64 * c);
}

void pack(const UnpackedBlock256& block, std::byte* out) noexcept {
  std::fill_n(out, kBytes, std::byte{0});
  store_f16(out, block.d);
  store_f16(out + 2, block.dmin);
  store_scales_6bit(block, out + 4);
  for (int i = 0; i < 256; ++i) add_bits(out + 16, four_bits_of(i).byte, block.q[i] << four_bits_of(i).shift);
}

void encode(const float* row, int64_t num_elems, std::byte* out) noexcept {
  UnpackedBlock256 block;
  for (; num_elems > 0; num_elems -= 256, row += 256, out += kBytes) {
    quantise_with_minima(row, 32, 15, 63, block);
    pack(block, out);
  }
}

}  // namespace

constinit const BlockFormat kQ4_KRow{.dtype = DType::kQ4_K,
                                     .scale_elems = 32,
                                     .q_min = 0,
                                     .q_max = 15,
                                     .has_min = true,
                                     .decode = decode_blocks256<unpack, kBytes, 32, Minimum::kUsed>,
                                     .encode = encode,
                                     .unpack256 = unpack};

}  // namespace headrace::quant
