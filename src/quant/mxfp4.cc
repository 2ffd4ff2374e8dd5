// MXFP4: blocks of 32 elements, w = 2^(e - 128) * level(code); levels: fp4_levels.h, which are doubled, hence 128.
//
//   0         1                       17
//   | e: u8   | 16 bytes of nibbles    |   low nibble of byte i: code of element i, high: of element i + 16
//
// Sources: struct block_mxfp4 in ggml-common.h of ggml; OCP Microscaling Formats (MX) specification 1.0. e = 255, there
// a NaN, is 2^127 in GGUF's definition, and so here.
#include <algorithm>
#include <cmath>

#include "quant/block_bytes.h"
#include "quant/block_decode.h"
#include "quant/format_rows.h"
#include "quant/fp4_levels.h"

namespace headrace::quant {
namespace {

constexpr int kBytes = 17;
static_assert(kBytes == 1 + 32 / 2);

void unpack(const std::byte* block, UnpackedBlock32& out) noexcept {
  out.d = std::ldexp(1.0f, load_u8(block, 0) - 128);
  out.m = 0;
  for (int i = 0; i < 32; ++i) out.q[i] = kFp4Levels[load_nibble32(block + 1, i)];
}

/// As the MX specification has it: the power of two that puts the greatest magnitude in [4, 8), where 6 is the greatest
/// number; so up to a quarter of that magnitude is cut off.
void encode(const float* row, int64_t num_elems, std::byte* out) noexcept {
  for (; num_elems > 0; num_elems -= 32, row += 32, out += kBytes) {
    float greatest = 0;
    for (int i = 0; i < 32; ++i) greatest = std::max(greatest, std::abs(row[i]));
    const int e = greatest > 0 ? std::clamp(std::ilogb(std::min(greatest, 0x1p127f)) - 2 + 127, 0, 254) : 0;
    store_u8(out, 0, e);
    const float step = std::ldexp(1.0f, e - 128);
    for (int i = 0; i < 16; ++i) {
      store_u8(out + 1, i, nearest_fp4_code(row[i] / step) | nearest_fp4_code(row[i + 16] / step) << 4);
    }
  }
}

}  // namespace

constinit const BlockFormat kMXFP4Row{.dtype = DType::kMXFP4,
                                      .scale_elems = 32,
                                      .q_min = -12,
                                      .q_max = 12,
                                      .has_min = false,
                                      .decode = decode_blocks32<unpack, kBytes, Minimum::kNone>,
                                      .encode = encode,
                                      .unpack32 = unpack};

}  // namespace headrace::quant
