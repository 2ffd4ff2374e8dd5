// IQ1_S: blocks of 256 elements, w = d * (2 * scale + 1) * (g +- 1/8), g in {-1, 0, 1} from a codebook.
//
//   0        2                               34                                   50
//   | d: f16 | 32 bytes: low 8 index bits    | 8 x u16, one for each 32 elements  |
//
// Byte g is the codebook index of elements 8 g to 8 g + 7. The u16 of 32 elements, from bit 0: four times the high
// three index bits, the scale (3 bits), the sign of 1/8 (set: minus). Unpacked: d / 8, q = 8 g +- 1. Source: struct
// block_iq1_s in ggml-common.h of ggml.
#include "quant/block_bytes.h"
#include "quant/block_decode.h"
#include "quant/format_rows.h"
#include "quant/iq1_point.h"

namespace headrace::quant {
namespace {

constexpr int kBytes = 50;
static_assert(kBytes == 2 + 256 / 8 + 256 / 16);

void unpack(const std::byte* block, UnpackedBlock256& out) noexcept {
  out = {};
  out.d = load_f16(block) * 0.125f;
  for (int s = 0; s < 8; ++s) {
    const int bits = load_le<uint16_t>(block + 34 + 2 * s);
    out.scale[s] = static_cast<int8_t>(2 * ((bits >> 12) & 7) + 1);
    for (int g = 0; g < 4; ++g) {
      const int index = load_u8(block + 2, 4 * s + g) | ((bits >> (3 * g)) & 7) << 8;
      iq1_point(index, (bits & 0x8000) != 0, out.q + 32 * s + 8 * g);
    }
  }
}

}  // namespace

constinit const BlockFormat kIQ1_SRow{.dtype = DType::kIQ1_S,
                                      .scale_elems = 32,
                                      .q_min = -9,
                                      .q_max = 9,
                                      .has_min = false,
                                      .decode = decode_blocks256<unpack, kBytes, 32, Minimum::kNone>,

                                      .unpack256 = unpack};

}  // namespace headrace::quant
