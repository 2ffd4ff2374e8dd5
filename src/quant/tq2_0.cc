// TQ2_0: blocks of 256 elements, w = d * (code - 1), codes of 2 bits.
//
//   0                     64       66
//   | 64 bytes of 2 bits  | d: f16 |      order of the codes: two_bits_of(); code 3 is valid and means 2 * d
//
// Source: struct block_tq2_0 in ggml-common.h of ggml.
#include <algorithm>

#include "quant/block_bytes.h"
#include "quant/block_decode.h"
#include "quant/encode_rounding.h"
#include "quant/format_rows.h"

namespace headrace::quant {
namespace {

constexpr int kBytes = 66;
static_assert(kBytes == 256 / 4 + 2);

void unpack(const std::byte* block, UnpackedBlock256& out) noexcept {
  out = {};
  out.d = load_f16(block + 64);
  std::fill_n(out.scale, 8, int8_t{1});
  for (int i = 0; i < 256; ++i) {
    const auto [byte, shift] = two_bits_of(i);
    out.q[i] = static_cast<int8_t>(((load_u8(block, byte) >> shift) & 3) - 1);
  }
}

/// The greatest magnitude becomes d.
void encode(const float* row, int64_t num_elems, std::byte* out) noexcept {
  for (; num_elems > 0; num_elems -= 256, row += 256, out += kBytes) {
    const float d = std::abs(extreme_of(row, 256));
    const float inverse = inverse_or_zero(d);
    std::fill_n(out, kBytes, std::byte{0});
    for (int i = 0; i < 256; ++i) {
      add_bits(out, two_bits_of(i).byte, (round_to(row[i] * inverse, -1, 1) + 1) << two_bits_of(i).shift);
    }
    store_f16(out + 64, nearest_f16(d));
  }
}

}  // namespace

constinit const BlockFormat kTQ2_0Row{.dtype = DType::kTQ2_0,
                                      .scale_elems = 32,
                                      .q_min = -1,
                                      .q_max = 2,
                                      .has_min = false,
                                      .decode = decode_blocks256<unpack, kBytes, 32, Minimum::kNone>,
                                      .encode = encode,
                                      .unpack256 = unpack};

}  // namespace headrace::quant
