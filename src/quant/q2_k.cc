// Q2_K: blocks of 256 elements, w = d * scale * code - dmin * min, a scale and a min for each 16.
//
//   0                          16                    80       82          84
//   | 16 x (scale | min << 4)  | 64 bytes of 2 bits  | d: f16 | dmin: f16 |      order of the codes: two_bits_of()
//
// Source: struct block_q2_K in ggml-common.h of ggml.
#include <algorithm>

#include "quant/block_bytes.h"
#include "quant/block_decode.h"
#include "quant/format_rows.h"
#include "quant/super_block_encode.h"

namespace headrace::quant {
namespace {

constexpr int kBytes = 84;
static_assert(kBytes == 256 / 16 + 256 / 4 + 2 + 2);

void unpack(const std::byte* block, UnpackedBlock256& out) noexcept {
  out = {};
  out.d = load_f16(block + 80);
  out.dmin = load_f16(block + 82);
  for (int s = 0; s < 16; ++s) {
    out.scale[s] = static_cast<int8_t>(load_u8(block, s) & 15);
    out.min[s] = static_cast<uint8_t>(load_u8(block, s) >> 4);
  }
  for (int h = 0; h < 2; ++h) load_bit_pairs(block + 16 + 32 * h, out.q + 128 * h);
}

void pack(const UnpackedBlock256& block, std::byte* out) noexcept {
  std::fill_n(out, kBytes, std::byte{0});
  for (int s = 0; s < 16; ++s) store_u8(out, s, block.scale[s] | block.min[s] << 4);
  for (int i = 0; i < 256; ++i) add_bits(out + 16, two_bits_of(i).byte, block.q[i] << two_bits_of(i).shift);
  store_f16(out + 80, block.d);
  store_f16(out + 82, block.dmin);
}

void encode(const float* row, int64_t num_elems, std::byte* out) noexcept {
  UnpackedBlock256 block;
  for (; num_elems > 0; num_elems -= 256, row += 256, out += kBytes) {
    quantise_with_minima(row, 16, 3, 15, block);
    pack(block, out);
  }
}

}  // namespace

constinit const BlockFormat kQ2_KRow{.dtype = DType::kQ2_K,
                                     .scale_elems = 16,
                                     .q_min = 0,
                                     .q_max = 3,
                                     .has_min = true,
                                     .decode = decode_blocks256<unpack, kBytes, 16, Minimum::kUsed>,
                                     .encode = encode,
                                     .unpack256 = unpack};

}  // namespace headrace::quant
