// IQ3_XXS: blocks of 256 elements, w = d / 4 * (2 * scale + 1) * (+-g), g in 4 to 62 from a codebook.
//
//   0        2                             66                                  98
//   | d: f16 | 64 bytes: indices           | 8 x u32, one for each 32 elements |
//
// Byte p is the codebook index of elements 4 p to 4 p + 3. The u32 holds four times 7 bits of signs (signs_of_7bits()),
// each for 8 elements, and the scale (4 bits). Unpacked: d / 4.
// Source: struct block_iq3_xxs in ggml-common.h of ggml.
#include "quant/block_bytes.h"
#include "quant/block_decode.h"
#include "quant/format_rows.h"
#include "quant/iq3_xxs_grid.h"
#include "quant/iq_points.h"

namespace headrace::quant {
namespace {

constexpr int kBytes = 98;
static_assert(kBytes == 2 + 256 / 4 + 256 / 8);
constexpr int8_t kIq3XxsLevels[8] = {4, 12, 20, 28, 36, 44, 52, 62};

void unpack(const std::byte* block, UnpackedBlock256& out) noexcept {
  out = {};
  out.d = load_f16(block) * 0.25f;
  for (int s = 0; s < 8; ++s) {
    const auto bits = load_le<uint32_t>(block + 66 + 4 * s);
    out.scale[s] = static_cast<int8_t>(2 * (bits >> 28) + 1);
    for (int g = 0; g < 4; ++g) {
      const std::byte* indices = block + 2 + 8 * s + 2 * g;
      const int signs = signs_of_7bits(static_cast<int>(bits >> (7 * g)));
      int8_t* q = out.q + 32 * s + 8 * g;
      iq3_point(kIq3XxsGrid[static_cast<size_t>(load_u8(indices, 0))], kIq3XxsLevels, signs, q);
      iq3_point(kIq3XxsGrid[static_cast<size_t>(load_u8(indices, 1))], kIq3XxsLevels, signs >> 4, q + 4);
    }
  }
}

}  // namespace

constinit const BlockFormat kIQ3_XXSRow{.dtype = DType::kIQ3_XXS,
                                        .scale_elems = 32,
                                        .q_min = -62,
                                        .q_max = 62,
                                        .has_min = false,
                                        .decode = decode_blocks256<unpack, kBytes, 32, Minimum::kNone>,

                                        .unpack256 = unpack};

}  // namespace headrace::quant
