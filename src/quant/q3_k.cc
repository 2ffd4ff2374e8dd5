// Q3_K: blocks of 256 elements, w = d * (scale - 32) * (code - 4), a scale for each 16, codes of 3 bits.
//
//   0                  32                         96                       108      110
//   | 32 bytes: bit 2  | 64 bytes: bits 0 and 1   | 12 bytes: 16 scales    | d: f16 |
//
// Bits 0 and 1: order of two_bits_of(). Bit 2 of element i: bit i / 32 of byte i % 32.
// Scale s of 6 bits: its low four in nibble s / 8 of byte s % 8, its high two in bits 2 * (s / 4) of byte 8 + s % 4.
// Source: struct block_q3_K in ggml-common.h of ggml.
#include <algorithm>

#include "quant/block_bytes.h"
#include "quant/block_decode.h"
#include "quant/format_rows.h"
#include "quant/super_block_encode.h"

namespace headrace::quant {
namespace {

constexpr int kBytes = 110;
static_assert(kBytes == 256 / 8 + 256 / 4 + 12 + 2);

void unpack(const std::byte* block, UnpackedBlock256& out) noexcept {
  out = {};
  const std::byte* scales = block + 96;
  out.d = load_f16(block + 108);
  for (int s = 0; s < 16; ++s) {
    const int low = (load_u8(scales, s % 8) >> (s / 8 * 4)) & 15;
    const int high = (load_u8(scales, 8 + s % 4) >> (s / 4 * 2)) & 3;
    out.scale[s] = static_cast<int8_t>((low | high << 4) - 32);
  }
  for (int h = 0; h < 2; ++h) load_bit_pairs(block + 32 + 32 * h, out.q + 128 * h);
  uint8_t high[32];
  std::memcpy(high, block, sizeof high);
  for (int s = 0; s < 8; ++s) {
    for (int i = 0; i < 32; ++i) {
      out.q[32 * s + i] = static_cast<int8_t>((out.q[32 * s + i] | (high[i] >> s & 1) << 2) - 4);
    }
  }
}

void pack(const UnpackedBlock256& block, std::byte* out) noexcept {
  std::fill_n(out, kBytes, std::byte{0});
  std::byte* scales = out + 96;
  for (int s = 0; s < 16; ++s) {
    const int scale = block.scale[s] + 32;
    add_bits(scales, s % 8, (scale & 15) << (s / 8 * 4));
    add_bits(scales, 8 + s % 4, (scale >> 4) << (s / 4 * 2));
  }
  for (int i = 0; i < 256; ++i) {
    const int code = block.q[i] + 4;
    add_bits(out + 32, two_bits_of(i).byte, (code & 3) << two_bits_of(i).shift);
    add_bits(out, i % 32, (code >> 2) << (i / 32));
  }
  store_f16(out + 108, block.d);
}

void encode(const float* row, int64_t num_elems, std::byte* out) noexcept {
  UnpackedBlock256 block;
  for (; num_elems > 0; num_elems -= 256, row += 256, out += kBytes) {
    quantise_signed(
        row, 16, -4, 3, 31, [](float v) { return round_to(v, -4, 3); }, block);
    pack(block, out);
  }
}

}  // namespace

constinit const BlockFormat kQ3_KRow{.dtype = DType::kQ3_K,
                                     .scale_elems = 16,
                                     .q_min = -4,
                                     .q_max = 3,
                                     .has_min = false,
                                     .decode = decode_blocks256<unpack, kBytes, 16, Minimum::kNone>,
                                     .encode = encode,
                                     .unpack256 = unpack};

}  // namespace headrace::quant
