// IQ3_S: blocks of 256 elements, w = d * (2 * scale + 1) * (+-g), g odd in 1 to 15 from a codebook.
//
//   0        2                              66                            74                  106            110
//   | d: f16 | 64 bytes: low 8 index bits   | 8 bytes: high index bit     | 32 bytes: signs   | 8 nibbles    |
//
// Byte p is the codebook index of elements 4 p to 4 p + 3, its high bit is bit p % 8 of byte p / 8. Bit j of sign byte
// g belongs to element 8 g + j (set: minus). Nibble s is the scale of elements 32 s to 32 s + 31. Source: struct
// block_iq3_s in ggml-common.h of ggml.
#include "quant/block_bytes.h"
#include "quant/block_decode.h"
#include "quant/format_rows.h"
#include "quant/iq3_s_grid.h"
#include "quant/iq_points.h"

namespace headrace::quant {
namespace {

constexpr int kBytes = 110;
static_assert(kBytes == 2 + 256 / 4 + 256 / 32 + 256 / 8 + 256 / 64);
constexpr int8_t kIq3SLevels[8] = {1, 3, 5, 7, 9, 11, 13, 15};

void unpack(const std::byte* block, UnpackedBlock256& out) noexcept {
  out = {};
  out.d = load_f16(block);
  for (int s = 0; s < 8; ++s) out.scale[s] = static_cast<int8_t>(2 * load_nibble(block + 106, s) + 1);
  for (int p = 0; p < 64; ++p) {
    const int high = (load_u8(block + 66, p / 8) >> (p % 8)) & 1;
    const auto index = static_cast<size_t>(load_u8(block + 2, p) | high << 8);
    const int signs = load_u8(block + 74, p / 2) >> (p % 2 * 4);
    iq3_point(kIq3SGrid[index], kIq3SLevels, signs, out.q + 4 * p);
  }
}

}  // namespace

constinit const BlockFormat kIQ3_SRow{.dtype = DType::kIQ3_S,
                                      .scale_elems = 32,
                                      .q_min = -15,
                                      .q_max = 15,
                                      .has_min = false,
                                      .decode = decode_blocks256<unpack, kBytes, 32, Minimum::kNone>,

                                      .unpack256 = unpack};

}  // namespace headrace::quant
