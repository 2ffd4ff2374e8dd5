#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace headrace::cluster {

/// How numbers of the residual stream cross the wire. Only kF32 gives the same tokens whatever the cuts between stages.
enum class WireDtype : uint8_t {
  kF32 = 0,
  kBf16 = 1,  ///< rounded to nearest, ties to even
  kF16 = 2,   ///< the same; beyond 65504 infinite
  kInt8 = 3,  ///< a scale for each row: its largest magnitude / 127
};
[[nodiscard]] std::string_view wire_dtype_name(WireDtype dtype) noexcept;  ///< "f32", "bf16", "f16", "int8"
[[nodiscard]] std::optional<WireDtype> find_wire_dtype(std::string_view name) noexcept;

/// Bytes before the data: rows u32 | width u32 | dtype u8 | zeros. As many as keep the data of a payload aligned.
inline constexpr size_t kActivationPrefixBytes = 16;
/// Of the whole payload.
[[nodiscard]] int64_t activation_payload_bytes(int64_t rows, int64_t width, WireDtype dtype) noexcept;

/// Appends the prefix and, but for kF32, the data: [rows][width] numbers, before them for kInt8 a scale f32 for each
/// row. With kF32 `values` themselves are the data: the next part of the frame, not copied. A row with an infinity or a
/// NaN is all NaN after kInt8. `width` > 0 divides the number of values.
void encode_activations(std::span<const float> values, int64_t width, WireDtype dtype, std::vector<std::byte>& out);

/// The values of a payload that must hold `rows` rows of `width`, in any dtype: where that is kF32 and the payload is
/// aligned for floats, `payload`'s own bytes; else they are in `decoded`, which keeps its memory. kCorrupt where the
/// payload is something else.
[[nodiscard]] Result<std::span<const float>> decode_activations(std::span<const std::byte> payload, int64_t rows,
                                                                int64_t width, std::vector<float>& decoded);

}  // namespace headrace::cluster
