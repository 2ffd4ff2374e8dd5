// Plain numbers, one an element, little-endian. F8_E4M3 and F8_E5M2 are those of the OCP 8-bit floating point
// specification (OFP8, revision 1.0), as safetensors files hold them; their block scales are tensors of their own.
#include <cmath>
#include <limits>

#include "quant/block_bytes.h"
#include "quant/format_rows.h"

namespace headrace::quant {
namespace {

template <class T, auto kToFloat>
void decode(const std::byte* row, int64_t num_elems, float* out) noexcept {
  for (int64_t i = 0; i < num_elems; ++i) out[i] = kToFloat(load_le<T>(row + i * static_cast<int64_t>(sizeof(T))));
}

template <class T, auto kFromFloat>
void encode(const float* row, int64_t num_elems, std::byte* out) noexcept {
  for (int64_t i = 0; i < num_elems; ++i) store_le<T>(out + i * static_cast<int64_t>(sizeof(T)), kFromFloat(row[i]));
}

constexpr float same(float value) noexcept { return value; }

/// Sign, 4 bits of exponent (bias 7), 3 bits of fraction. No infinity: S.1111.111 is NaN.
float f8e4m3_to_f32(uint8_t code) noexcept {
  const int exponent = (code >> 3) & 15;
  const int fraction = code & 7;
  float magnitude = exponent == 0 ? std::ldexp(static_cast<float>(fraction), -9)
                                  : std::ldexp(static_cast<float>(8 + fraction), exponent - 10);
  if ((code & 0x7f) == 0x7f) magnitude = std::numeric_limits<float>::quiet_NaN();
  return (code & 0x80) ? -magnitude : magnitude;
}

/// Sign, 5 bits of exponent, 2 bits of fraction: the upper half of a binary16.
float f8e5m2_to_f32(uint8_t code) noexcept { return f16_to_f32(static_cast<uint16_t>(code << 8)); }

}  // namespace

constinit const BlockFormat kF32Row{.dtype = DType::kF32,
                                    .scale_elems = 1,
                                    .q_min = 0,
                                    .q_max = 0,
                                    .has_min = false,
                                    .decode = decode<float, same>,
                                    .encode = encode<float, same>};
constinit const BlockFormat kF16Row{.dtype = DType::kF16,
                                    .scale_elems = 1,
                                    .q_min = 0,
                                    .q_max = 0,
                                    .has_min = false,
                                    .decode = decode<uint16_t, f16_to_f32>,
                                    .encode = encode<uint16_t, f32_to_f16>};
constinit const BlockFormat kBF16Row{.dtype = DType::kBF16,
                                     .scale_elems = 1,
                                     .q_min = 0,
                                     .q_max = 0,
                                     .has_min = false,
                                     .decode = decode<uint16_t, bf16_to_f32>,
                                     .encode = encode<uint16_t, f32_to_bf16>};
constinit const BlockFormat kF8E4M3Row{.dtype = DType::kF8E4M3,
                                       .scale_elems = 1,
                                       .q_min = 0,
                                       .q_max = 0,
                                       .has_min = false,
                                       .decode = decode<uint8_t, f8e4m3_to_f32>};
constinit const BlockFormat kF8E5M2Row{.dtype = DType::kF8E5M2,
                                       .scale_elems = 1,
                                       .q_min = 0,
                                       .q_max = 0,
                                       .has_min = false,
                                       .decode = decode<uint8_t, f8e5m2_to_f32>};

}  // namespace headrace::quant
