// IQ2_XS: blocks of 256 elements, w = d / 8 * (2 * scale + 1) * (+-g), g in {8, 25, 43} from a codebook.
//
//   0        2                                          66              74
//   | d: f16 | 32 x u16, one for each 8 elements        | 16 nibbles    |
//
// A u16 holds the codebook index (9 bits) and 7 bits of signs (signs_of_7bits()); nibble s is the scale of elements 16
// s to 16 s + 15. Unpacked: d / 8. Source: struct block_iq2_xs in ggml-common.h of ggml.
#include "quant/block_bytes.h"
#include "quant/block_decode.h"
#include "quant/format_rows.h"
#include "quant/iq2_xs_grid.h"
#include "quant/iq_points.h"

namespace headrace::quant {
namespace {

constexpr int kBytes = 74;
static_assert(kBytes == 2 + 256 / 4 + 256 / 32);

void unpack(const std::byte* block, UnpackedBlock256& out) noexcept {
  out = {};
  out.d = load_f16(block) * 0.125f;
  for (int s = 0; s < 16; ++s) out.scale[s] = static_cast<int8_t>(2 * load_nibble(block + 66, s) + 1);
  for (int g = 0; g < 32; ++g) {
    const int bits = load_le<uint16_t>(block + 2 + 2 * g);
    iq2_point(kIq2XsGrid[static_cast<size_t>(bits & 511)], signs_of_7bits(bits >> 9), out.q + 8 * g);
  }
}

}  // namespace

constinit const BlockFormat kIQ2_XSRow{.dtype = DType::kIQ2_XS,
                                       .scale_elems = 16,
                                       .q_min = -43,
                                       .q_max = 43,
                                       .has_min = false,
                                       .decode = decode_blocks256<unpack, kBytes, 16, Minimum::kNone>,

                                       .unpack256 = unpack};

}  // namespace headrace::quant
