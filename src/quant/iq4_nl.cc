// IQ4_NL: blocks of 32 elements, w = d * level(code); levels: iq4_levels.h.
//
//   0        2                       18
//   | d: f16 | 16 bytes of nibbles    |   low nibble of byte i: code of element i, high: of element i + 16
//
// Source: struct block_iq4_nl in ggml-common.h of ggml.
#include "quant/block_bytes.h"
#include "quant/block_decode.h"
#include "quant/encode_rounding.h"
#include "quant/format_rows.h"
#include "quant/iq4_levels.h"

namespace headrace::quant {
namespace {

constexpr int kBytes = 18;
static_assert(kBytes == 2 + 32 / 2);

void unpack(const std::byte* block, UnpackedBlock32& out) noexcept {
  out.d = load_f16(block);
  out.m = 0;
  for (int i = 0; i < 32; ++i) out.q[i] = kIq4Levels[static_cast<size_t>(load_nibble32(block + 2, i))];
}

/// d is the least with which the levels -127 to 113, or with a negative d 127 to -113, cover the block.
void encode(const float* row, int64_t num_elems, std::byte* out) noexcept {
  for (; num_elems > 0; num_elems -= 32, row += 32, out += kBytes) {
    const Range range = range_of(row, 32);
    const float up = std::max(range.hi, 0.0f), down = std::max(-range.lo, 0.0f);
    const float upright = std::max(up / 113.0f, down / 127.0f), flipped = std::max(up / 127.0f, down / 113.0f);
    const float d = flipped < upright ? -f16_at_least(flipped) : f16_at_least(upright);
    const float inverse = inverse_or_zero(d);
    store_f16(out, d);
    for (int i = 0; i < 16; ++i) {
      store_u8(out + 2, i, nearest_iq4_code(row[i] * inverse) | nearest_iq4_code(row[i + 16] * inverse) << 4);
    }
  }
}

}  // namespace

constinit const BlockFormat kIQ4_NLRow{.dtype = DType::kIQ4_NL,
                                       .scale_elems = 32,
                                       .q_min = -127,
                                       .q_max = 113,
                                       .has_min = false,
                                       .decode = decode_blocks32<unpack, kBytes, Minimum::kNone>,
                                       .encode = encode,
                                       .unpack32 = unpack};

}  // namespace headrace::quant
