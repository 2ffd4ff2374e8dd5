// IQ4_XS: blocks of 256 elements, w = d * (scale - 32) * level(code), a scale for each 32; levels: iq4_levels.h.
//
//   0        2                         4                           8                         136
//   | d: f16 | scale bits 4, 5: u16    | 4 bytes: scale bits 0-3   | 128 bytes of nibbles    |
//
// Scale s: nibble s of the 4 bytes, bits 2 * s of the u16. Codes: each 32 elements in 16 bytes, element i in the low
// nibble of byte i, i + 16 in the high one.
// Source: struct block_iq4_xs in ggml-common.h of ggml.
#include <algorithm>

#include "quant/block_bytes.h"
#include "quant/block_decode.h"
#include "quant/format_rows.h"
#include "quant/iq4_levels.h"
#include "quant/super_block_encode.h"

namespace headrace::quant {
namespace {

constexpr int kBytes = 136;
static_assert(kBytes == 2 + 2 + 256 / 64 + 256 / 2);

void unpack(const std::byte* block, UnpackedBlock256& out) noexcept {
  out = {};
  const int high_bits = load_le<uint16_t>(block + 2);
  out.d = load_f16(block);
  for (int s = 0; s < 8; ++s) {
    const int high = (high_bits >> (2 * s)) & 3;
    out.scale[s] = static_cast<int8_t>((load_nibble(block + 4, s) | high << 4) - 32);
    const std::byte* codes = block + 8 + 16 * s;
    for (int i = 0; i < 32; ++i) out.q[32 * s + i] = kIq4Levels[static_cast<size_t>(load_nibble32(codes, i))];
  }
}

void pack(const UnpackedBlock256& block, std::byte* out) noexcept {
  std::fill_n(out, kBytes, std::byte{0});
  int high_bits = 0;
  for (int s = 0; s < 8; ++s) {
    const int scale = block.scale[s] + 32;
    high_bits |= (scale >> 4) << (2 * s);
    add_bits(out + 4, s / 2, (scale & 15) << (s % 2 * 4));
    const int8_t* q = block.q + 32 * s;
    for (int i = 0; i < 16; ++i) store_u8(out + 8 + 16 * s, i, iq4_code_of(q[i]) | iq4_code_of(q[i + 16]) << 4);
  }
  store_f16(out, block.d);
  store_le(out + 2, static_cast<uint16_t>(high_bits));
}

void encode(const float* row, int64_t num_elems, std::byte* out) noexcept {
  UnpackedBlock256 block;
  for (; num_elems > 0; num_elems -= 256, row += 256, out += kBytes) {
    quantise_signed(
        row, 32, -127, 113, 31, [](float v) { return nearest_iq4_level(v); }, block);
    pack(block, out);
  }
}

}  // namespace

constinit const BlockFormat kIQ4_XSRow{.dtype = DType::kIQ4_XS,
                                       .scale_elems = 32,
                                       .q_min = -127,
                                       .q_max = 113,
                                       .has_min = false,
                                       .decode = decode_blocks256<unpack, kBytes, 32, Minimum::kNone>,
                                       .encode = encode,
                                       .unpack256 = unpack};

}  // namespace headrace::quant
