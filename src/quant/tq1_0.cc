// TQ1_0: blocks of 256 elements, w = d * (digit - 1), digits 0, 1, 2 of base 3, five in a byte.
//
//   0                         32                       48                      52       54
//   | 32 bytes: 0 to 159      | 16 bytes: 160 to 239   | 4 bytes: 240 to 255    | d: f16 |
//
// In a field of n bytes, elements b, b + n, b + 2n, ... are the digits of byte b, most significant first. A byte holds
// the fraction 0.digits as ceil(256 * fraction), so that the digit is the carry of a product with 3. The last field
// holds four digits in a byte; the fifth is 0.
// Source: struct block_tq1_0 in ggml-common.h of ggml.
#include <algorithm>

#include "quant/block_bytes.h"
#include "quant/block_decode.h"
#include "quant/encode_rounding.h"
#include "quant/format_rows.h"

namespace headrace::quant {
namespace {

constexpr int kBytes = 54;
static_assert(kBytes == 32 + 16 + 4 + 2);
constexpr int kPowersOf3[] = {1, 3, 9, 27, 81};

/// Calls f(element, byte, place of the digit) for all elements.
template <class F>
void for_each_digit(F f) noexcept {
  for (int i = 0; i < 160; ++i) f(i, i % 32, i / 32);
  for (int i = 0; i < 80; ++i) f(160 + i, 32 + i % 16, i / 16);
  for (int i = 0; i < 16; ++i) f(240 + i, 48 + i % 4, i / 4);
}

void unpack(const std::byte* block, UnpackedBlock256& out) noexcept {
  out = {};
  out.d = load_f16(block + 52);
  std::fill_n(out.scale, 8, int8_t{1});
  for_each_digit([&](int elem, int byte, int place) {
    const int fraction = (load_u8(block, byte) * kPowersOf3[place]) & 255;
    out.q[elem] = static_cast<int8_t>((fraction * 3 >> 8) - 1);
  });
}

/// The greatest magnitude becomes d.
void encode(const float* row, int64_t num_elems, std::byte* out) noexcept {
  for (; num_elems > 0; num_elems -= 256, row += 256, out += kBytes) {
    const float d = std::abs(extreme_of(row, 256));
    const float inverse = inverse_or_zero(d);
    int numbers[52] = {};
    for_each_digit([&](int elem, int byte, int place) {
      numbers[byte] += (round_to(row[elem] * inverse, -1, 1) + 1) * kPowersOf3[4 - place];
    });
    for (int byte = 0; byte < 52; ++byte) store_u8(out, byte, (numbers[byte] * 256 + 242) / 243);
    store_f16(out + 52, nearest_f16(d));
  }
}

}  // namespace

constinit const BlockFormat kTQ1_0Row{.dtype = DType::kTQ1_0,
                                      .scale_elems = 32,
                                      .q_min = -1,
                                      .q_max = 1,
                                      .has_min = false,
                                      .decode = decode_blocks256<unpack, kBytes, 32, Minimum::kNone>,
                                      .encode = encode,
                                      .unpack256 = unpack};

}  // namespace headrace::quant
