// Q4_1: blocks of 32 elements, w = d * code + m.
//
//   0        2        4                       20
//   | d: f16 | m: f16 | 16 bytes of nibbles    |   low nibble of byte i: code of element i, high: of element i + 16
//
// Source: struct block_q4_1 in ggml-common.h of ggml.
#include "quant/block_bytes.h"
#include "quant/block_decode.h"
#include "quant/encode_rounding.h"
#include "quant/format_rows.h"

namespace headrace::quant {
namespace {

constexpr int kBytes = 20;
static_assert(kBytes == 2 + 2 + 32 / 2);

void unpack(const std::byte* block, UnpackedBlock32& out) noexcept {
  out.d = load_f16(block);
  out.m = load_f16(block + 2);
  load_nibbles<16>(block + 4, out.q);
}

/// Code 0 is the least element, code 15 the greatest.
void encode(const float* row, int64_t num_elems, std::byte* out) noexcept {
  for (; num_elems > 0; num_elems -= 32, row += 32, out += kBytes) {
    const Range range = range_of(row, 32);
    const float d = (range.hi - range.lo) / 15.0f;
    const float inverse = inverse_or_zero(d);
    store_f16(out, nearest_f16(d));
    store_f16(out + 2, nearest_f16(range.lo));
    for (int i = 0; i < 16; ++i) {
      const int low = truncate_to((row[i] - range.lo) * inverse + 0.5f, 0, 15);
      const int high = truncate_to((row[i + 16] - range.lo) * inverse + 0.5f, 0, 15);
      store_u8(out + 4, i, low | high << 4);
    }
  }
}

}  // namespace

constinit const BlockFormat kQ4_1Row{.dtype = DType::kQ4_1,
                                     .scale_elems = 32,
                                     .q_min = 0,
                                     .q_max = 15,
                                     .has_min = true,
                                     .decode = decode_blocks32<unpack, kBytes, Minimum::kUsed>,
                                     .encode = encode,
                                     .unpack32 = unpack};

}  // namespace headrace::quant
