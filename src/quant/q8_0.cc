// Q8_0: blocks of 32 elements, w = d * code.
//
//   0        2                34
//   | d: f16 | 32 codes: i8    |
//
// Source: struct block_q8_0 in ggml-common.h of ggml.
#include "quant/block_bytes.h"
#include "quant/block_decode.h"
#include "quant/encode_rounding.h"
#include "quant/format_rows.h"

namespace headrace::quant {
namespace {

constexpr int kBytes = 34;
static_assert(kBytes == 2 + 32);

void unpack(const std::byte* block, UnpackedBlock32& out) noexcept {
  out.d = load_f16(block);
  out.m = 0;
  for (int i = 0; i < 32; ++i) out.q[i] = static_cast<int8_t>(load_i8(block + 2, i));
}

/// The greatest magnitude gets code 127 or -127; -128, which files may hold, is never written.
void encode(const float* row, int64_t num_elems, std::byte* out) noexcept {
  for (; num_elems > 0; num_elems -= 32, row += 32, out += kBytes) {
    const float d = std::abs(extreme_of(row, 32)) / 127.0f;
    const float inverse = inverse_or_zero(d);
    store_f16(out, nearest_f16(d));
    for (int i = 0; i < 32; ++i) store_u8(out + 2, i, round_to(row[i] * inverse, -127, 127));
  }
}

}  // namespace

constinit const BlockFormat kQ8_0Row{.dtype = DType::kQ8_0,
                                     .scale_elems = 32,
                                     .q_min = -128,
                                     .q_max = 127,
                                     .has_min = false,
                                     .decode = decode_blocks32<unpack, kBytes, Minimum::kNone>,
                                     .encode = encode,
                                     .unpack32 = unpack};

}  // namespace headrace::quant
