// Q6_K: blocks of 256 elements, w = d * scale * (code - 32), a scale for each 16, codes of 6 bits.
//
//   0                           128                       192                208      210
//   | 128 bytes: bits 0 to 3    | 64 bytes: bits 4 and 5  | 16 scales: i8    | d: f16 |
//
// Bits 4 and 5: order of two_bits_of(). Bits 0 to 3: each 128 elements in 64 bytes, element l of them (l < 64) in the
// low nibble of byte l, l + 64 in the high one.
// Source: struct block_q6_K in ggml-common.h of ggml.
#include <algorithm>

#include "quant/block_bytes.h"
#include "quant/block_decode.h"
#include "quant/format_rows.h"
#include "quant/super_block_encode.h"

namespace headrace::quant {
namespace {

constexpr int kBytes = 210;
static_assert(kBytes == 256 / 2 + 256 / 4 + 256 / 16 + 2);

constexpr FourBits low_bits_of(int i) noexcept { return {i / 128 * 64 + i % 64, i % 128 / 64 * 4}; }

void unpack(const std::byte* block, UnpackedBlock256& out) noexcept {
  out = {};
  out.d = load_f16(block + 208);
  for (int s = 0; s < 16; ++s) out.scale[s] = static_cast<int8_t>(load_i8(block + 192, s));
  for (int h = 0; h < 2; ++h) {
    load_nibbles<64>(block + 64 * h, out.q + 128 * h);
    uint8_t high[32];
    std::memcpy(high, block + 128 + 32 * h, sizeof high);
    for (int s = 0; s < 4; ++s) {
      int8_t* q = out.q + 128 * h + 32 * s;
      for (int i = 0; i < 32; ++i) q[i] = static_cast<int8_t>((q[i] | (high[i] >> 2 * s & 3) << 4) - 32);
    }
  }
}

void pack(const UnpackedBlock256& block, std::byte* out) noexcept {
  std::fill_n(out, kBytes, std::byte{0});
  for (int i = 0; i < 256; ++i) {
    const int code = block.q[i] + 32;
    add_bits(out, low_bits_of(i).byte, (code & 15) << low_bits_of(i).shift);
    add_bits(out + 128, two_bits_of(i).byte, (code >> 4) << two_bits_of(i).shift);
  }
  for (int s = 0; s < 16; ++s) store_u8(out + 192, s, block.scale[s]);
  store_f16(out + 208, block.d);
}

void encode(const float* row, int64_t num_elems, std::byte* out) noexcept {
  UnpackedBlock256 block;
  for (; num_elems > 0; num_elems -= 256, row += 256, out += kBytes) {
    quantise_signed(
        row, 16, -32, 31, 127, [](float v) { return round_to(v, -32, 31); }, block);
    pack(block, out);
  }
}

}  // namespace

constinit const BlockFormat kQ6_KRow{.dtype = DType::kQ6_K,
                                     .scale_elems = 16,
                                     .q_min = -32,
                                     .q_max = 31,
                                     .has_min = false,
                                     .decode = decode_blocks256<unpack, kBytes, 16, Minimum::kNone>,
                                     .encode = encode,
                                     .unpack256 = unpack};

}  // namespace headrace::quant
