// Q5_1: blocks of 32 elements, w = d * code + m.
//
//   0        2        4            8                       24
//   | d: f16 | m: f16 | bit 4: u32 | 16 bytes of nibbles    |   bit i of the u32 is bit 4 of code i;
//                                                              low nibble of byte i: code i, high: code i + 16
//
// Source: struct block_q5_1 in ggml-common.h of ggml.
#include "quant/block_bytes.h"
#include "quant/block_decode.h"
#include "quant/encode_rounding.h"
#include "quant/format_rows.h"

namespace headrace::quant {
namespace {

constexpr int kBytes = 24;
static_assert(kBytes == 2 + 2 + 32 / 8 + 32 / 2);

void unpack(const std::byte* block, UnpackedBlock32& out) noexcept {
  const auto high_bits = load_le<uint32_t>(block + 4);
  out.d = load_f16(block);
  out.m = load_f16(block + 2);
  for (int i = 0; i < 32; ++i) {
    const int high = static_cast<int>((high_bits >> i) & 1u) << 4;
    out.q[i] = static_cast<int8_t>(load_nibble32(block + 8, i) | high);
  }
}

/// Code 0 is the least element, code 31 the greatest.
void encode(const float* row, int64_t num_elems, std::byte* out) noexcept {
  for (; num_elems > 0; num_elems -= 32, row += 32, out += kBytes) {
    const Range range = range_of(row, 32);
    const float d = (range.hi - range.lo) / 31.0f;
    const float inverse = inverse_or_zero(d);
    uint32_t high_bits = 0;
    for (int i = 0; i < 16; ++i) {
      const int first = truncate_to((row[i] - range.lo) * inverse + 0.5f, 0, 31);
      const int second = truncate_to((row[i + 16] - range.lo) * inverse + 0.5f, 0, 31);
      store_u8(out + 8, i, (first & 15) | second << 4);
      high_bits |= static_cast<uint32_t>(first >> 4) << i | static_cast<uint32_t>(second >> 4) << (i + 16);
    }
    store_f16(out, nearest_f16(d));
    store_f16(out + 2, nearest_f16(range.lo));
    store_le(out + 4, high_bits);
  }
}

}  // namespace

constinit const BlockFormat kQ5_1Row{.dtype = DType::kQ5_1,
                                     .scale_elems = 32,
                                     .q_min = 0,
                                     .q_max = 31,
                                     .has_min = true,
                                     .decode = decode_blocks32<unpack, kBytes, Minimum::kUsed>,
                                     .encode = encode,
                                     .unpack32 = unpack};

}  // namespace headrace::quant
