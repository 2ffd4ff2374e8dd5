// Q4_0: blocks of 32 elements, w = d * (code - 8).
//
//   0        2                       18
//   | d: f16 | 16 bytes of nibbles    |   low nibble of byte i: code of element i, high: of element i + 16
//
// Source: struct block_q4_0 in ggml-common.h of ggml.
#include "quant/block_bytes.h"
#include "quant/block_decode.h"
#include "quant/encode_rounding.h"
#include "quant/format_rows.h"

namespace headrace::quant {
namespace {

constexpr int kBytes = 18;
static_assert(kBytes == 2 + 32 / 2);

void unpack(const std::byte* block, UnpackedBlock32& out) noexcept {
  out.d = load_f16(block);
  out.m = 0;
  load_nibbles<16>(block + 2, out.q);
  for (int8_t& q : out.q) q = static_cast<int8_t>(q - 8);
}

/// The element of greatest magnitude gets code 0 exactly, so the far end of the other side is 7 steps.
void encode(const float* row, int64_t num_elems, std::byte* out) noexcept {
  for (; num_elems > 0; num_elems -= 32, row += 32, out += kBytes) {
    const float d = extreme_of(row, 32) / -8.0f;
    const float inverse = inverse_or_zero(d);
    store_f16(out, nearest_f16(d));
    for (int i = 0; i < 16; ++i) {
      const int low = truncate_to(row[i] * inverse + 8.5f, 0, 15);
      const int high = truncate_to(row[i + 16] * inverse + 8.5f, 0, 15);
      store_u8(out + 2, i, low | high << 4);
    }
  }
}

}  // namespace

constinit const BlockFormat kQ4_0Row{.dtype = DType::kQ4_0,
                                     .scale_elems = 32,
                                     .q_min = -8,
                                     .q_max = 7,
                                     .has_min = false,
                                     .decode = decode_blocks32<unpack, kBytes, Minimum::kNone>,
                                     .encode = encode,
                                     .unpack32 = unpack};

}  // namespace headrace::quant
