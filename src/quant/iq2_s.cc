// IQ2_S: blocks of 256 elements, w = d / 8 * (2 * scale + 1) * (+-g), g in {8, 25, 43} from a codebook.
//
//   0        2                               34                  66                               74              82
//   | d: f16 | 32 bytes: low 8 index bits    | 32 bytes: signs   | 8 bytes: high 2 index bits     | 16 nibbles    |
//
// Byte g of indices and signs belongs to elements 8 g to 8 g + 7, bit j of a sign byte to the j-th of them (set:
// minus); its high index bits are bits 2 (g % 4) of byte g / 4. Nibble s is the scale of elements 16 s to 16 s + 15.
// Unpacked: d / 8.
// Source: struct block_iq2_s in ggml-common.h of ggml.
#include "quant/block_bytes.h"
#include "quant/block_decode.h"
#include "quant/format_rows.h"
#include "quant/iq2_s_grid.h"
#include "quant/iq_points.h"

namespace headrace::quant {
namespace {

constexpr int kBytes = 82;
static_assert(kBytes == 2 + 256 / 8 + 256 / 8 + 256 / 32 + 256 / 32);

void unpack(const std::byte* block, UnpackedBlock256& out) noexcept {
  out = {};
  out.d = load_f16(block) * 0.125f;
  for (int s = 0; s < 16; ++s) out.scale[s] = static_cast<int8_t>(2 * load_nibble(block + 74, s) + 1);
  for (int g = 0; g < 32; ++g) {
    const int high = (load_u8(block + 66, g / 4) >> (g % 4 * 2)) & 3;
    const auto index = static_cast<size_t>(load_u8(block + 2, g) | high << 8);
    iq2_point(kIq2SGrid[index], load_u8(block + 34, g), out.q + 8 * g);
  }
}

}  // namespace

constinit const BlockFormat kIQ2_SRow{.dtype = DType::kIQ2_S,
                                      .scale_elems = 16,
                                      .q_min = -43,
                                      .q_max = 43,
                                      .has_min = false,
                                      .decode = decode_blocks256<unpack, kBytes, 16, Minimum::kNone>,

                                      .unpack256 = unpack};

}  // namespace headrace::quant
