// IQ2_XXS: blocks of 256 elements, w = d / 8 * (2 * scale + 1) * (+-g), g in {8, 25, 43} from a codebook.
//
//   0        2                                            66
//   | d: f16 | 8 x (4 bytes of indices | u32)             |
//
// Each 8 bytes hold 32 elements: byte g is the codebook index of 8 of them; the u32 holds four times 7 bits of signs
// (signs_of_7bits()) and the scale (4 bits). Unpacked: d / 8.
// Source: struct block_iq2_xxs in ggml-common.h of ggml.
#include "quant/block_bytes.h"
#include "quant/block_decode.h"
#include "quant/format_rows.h"
#include "quant/iq2_xxs_grid.h"
#include "quant/iq_points.h"

namespace headrace::quant {
namespace {

constexpr int kBytes = 66;
static_assert(kBytes == 2 + 256 / 4);

void unpack(const std::byte* block, UnpackedBlock256& out) noexcept {
  out = {};
  out.d = load_f16(block) * 0.125f;
  for (int s = 0; s < 8; ++s) {
    const std::byte* indices = block + 2 + 8 * s;
    const auto bits = load_le<uint32_t>(indices + 4);
    out.scale[s] = static_cast<int8_t>(2 * (bits >> 28) + 1);
    for (int g = 0; g < 4; ++g) {
      const auto index = static_cast<size_t>(load_u8(indices, g));
      iq2_point(kIq2XxsGrid[index], signs_of_7bits(static_cast<int>(bits >> (7 * g))), out.q + 32 * s + 8 * g);
    }
  }
}

}  // namespace

constinit const BlockFormat kIQ2_XXSRow{.dtype = DType::kIQ2_XXS,
                                        .scale_elems = 32,
                                        .q_min = -43,
                                        .q_max = 43,
                                        .has_min = false,
                                        .decode = decode_blocks256<unpack, kBytes, 32, Minimum::kNone>,

                                        .unpack256 = unpack};

}  // namespace headrace::quant
