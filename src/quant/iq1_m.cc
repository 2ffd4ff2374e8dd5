// IQ1_M: blocks of 256 elements, w = d * (2 * scale + 1) * (g +- 1/8), g in {-1, 0, 1} from a codebook.
//
//   0                               32                     48           56
//   | 32 bytes: low 8 index bits    | 32 nibbles           | 4 x u16    |
//
// Byte g and nibble g belong to elements 8 g to 8 g + 7; the nibble holds the high three index bits and the sign of 1/8
// (set: minus). A u16 holds four scales of 3 bits, one for each 16 elements; its upper four bits are a piece of the f16
// d, the first u16 the lowest piece. Unpacked: d / 8, q = 8 g +- 1.
// Source: struct block_iq1_m in ggml-common.h of ggml.
#include "quant/block_bytes.h"
#include "quant/block_decode.h"
#include "quant/format_rows.h"
#include "quant/iq1_point.h"

namespace headrace::quant {
namespace {

constexpr int kBytes = 56;
static_assert(kBytes == 256 / 8 + 256 / 16 + 256 / 32);

void unpack(const std::byte* block, UnpackedBlock256& out) noexcept {
  out = {};
  int d_bits = 0;
  for (int s = 0; s < 16; ++s) {
    const int bits = load_le<uint16_t>(block + 48 + s / 4 * 2);
    out.scale[s] = static_cast<int8_t>(2 * ((bits >> (s % 4 * 3)) & 7) + 1);
    if (s % 4 == 0) d_bits |= (bits >> 12) << s;
  }
  out.d = f16_to_f32(static_cast<uint16_t>(d_bits)) * 0.125f;
  for (int g = 0; g < 32; ++g) {
    const int nibble = load_nibble(block + 32, g);
    iq1_point(load_u8(block, g) | (nibble & 7) << 8, (nibble & 8) != 0, out.q + 8 * g);
  }
}

}  // namespace

constinit const BlockFormat kIQ1_MRow{.dtype = DType::kIQ1_M,
                                      .scale_elems = 16,
                                      .q_min = -9,
                                      .q_max = 9,
                                      .has_min = false,
                                      .decode = decode_blocks256<unpack, kBytes, 16, Minimum::kNone>,

                                      .unpack256 = unpack};

}  // namespace headrace::quant
