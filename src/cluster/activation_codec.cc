#include "cluster/activation_codec.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/byte_reader.h"
#include "base/half.h"
#include "cluster/half_lanes.h"

namespace headrace::cluster {
namespace {

constexpr std::array<std::string_view, 4> kNames{"f32", "bf16", "f16", "int8"};

int64_t data_bytes(int64_t rows, int64_t width, WireDtype dtype) {
  switch (dtype) {
    case WireDtype::kF32:
      return rows * width * 4;
    case WireDtype::kBf16:
    case WireDtype::kF16:
      return rows * width * 2;
    case WireDtype::kInt8:
      return rows * (width + 4);
  }
  return 0;
}

// Numbers in a frame may lie at any byte, so the loops load and store by memcpy; compilers make vectors of that.

template <class Convert>
void encode_halves(std::span<const float> values, std::byte* out, Convert convert) {
  for (size_t i = 0; i < values.size(); ++i) store_le(out + 2 * i, convert(values[i]));
}

template <class Convert>
void decode_halves(const std::byte* in, std::span<float> values, Convert convert) {
  for (size_t i = 0; i < values.size(); ++i) values[i] = convert(load_le<uint16_t>(in + 2 * i));
}

float row_scale(std::span<const float> row) {
  // As integers, magnitudes have the order of their values, and NaN comes after infinity.
  uint32_t largest = 0;
  for (const float value : row) largest = std::max(largest, std::bit_cast<uint32_t>(value) & 0x7fffffffu);
  const float magnitude = std::bit_cast<float>(largest);
  return std::isfinite(magnitude) ? magnitude / 127.0f : std::numeric_limits<float>::quiet_NaN();
}

void encode_int8_row(std::span<const float> row, float scale, std::byte* out) {
  constexpr float kRound = 12582912.0f;  // 1.5 * 2^23: what is added to it is rounded to an integer
  if (!(scale > 0)) {                    // all zero, next to zero, or not finite
    std::fill_n(out, row.size(), std::byte{0});
    return;
  }
  for (size_t i = 0; i < row.size(); ++i) {
    // A scale below the least normal number is coarse, and the quotient then more than 127.
    const float quotient = std::min(std::max(row[i] / scale, -127.0f), 127.0f);
    out[i] = static_cast<std::byte>(std::bit_cast<uint32_t>(quotient + kRound));
  }
}

void decode_int8_row(const std::byte* in, float scale, std::span<float> row) {
  for (size_t i = 0; i < row.size(); ++i) row[i] = scale * static_cast<float>(static_cast<int8_t>(in[i]));
}

void encode_int8(std::span<const float> values, size_t width, std::byte* out) {
  const size_t rows = values.size() / width;
  std::byte* const numbers = out + 4 * rows;
  for (size_t r = 0; r < rows; ++r) {
    const std::span<const float> row = values.subspan(r * width, width);
    const float scale = row_scale(row);
    store_le(out + 4 * r, scale);
    encode_int8_row(row, scale, numbers + r * width);
  }
}

void decode_int8(const std::byte* in, size_t width, std::span<float> values) {
  const size_t rows = values.size() / width;
  const std::byte* const numbers = in + 4 * rows;
  for (size_t r = 0; r < rows; ++r)
    decode_int8_row(numbers + r * width, load_le<float>(in + 4 * r), values.subspan(r * width, width));
}

Error corrupt(const std::string& what) { return Error(ErrorCode::kCorrupt, cat("activations: ", what)); }

}  // namespace

std::string_view wire_dtype_name(WireDtype dtype) noexcept { return kNames[static_cast<size_t>(dtype)]; }

std::optional<WireDtype> find_wire_dtype(std::string_view name) noexcept {
  const auto found = std::find(kNames.begin(), kNames.end(), name);
  if (found == kNames.end()) return std::nullopt;
  return static_cast<WireDtype>(found - kNames.begin());
}

int64_t activation_payload_bytes(int64_t rows, int64_t width, WireDtype dtype) noexcept {
  return static_cast<int64_t>(kActivationPrefixBytes) + data_bytes(rows, width, dtype);
}

void encode_activations(std::span<const float> values, int64_t width, WireDtype dtype, std::vector<std::byte>& out) {
  const auto row_width = static_cast<size_t>(width);
  HR_CHECK(width > 0 && values.size() % row_width == 0, values.size(), " values, width ", width);
  const size_t rows = values.size() / row_width;
  const size_t begin = out.size();
  const int64_t bytes = dtype == WireDtype::kF32 ? 0 : data_bytes(static_cast<int64_t>(rows), width, dtype);
  out.resize(begin + kActivationPrefixBytes + static_cast<size_t>(bytes));
  std::byte* const prefix = out.data() + begin;
  store_le(prefix, static_cast<uint32_t>(rows));
  store_le(prefix + 4, static_cast<uint32_t>(width));
  store_le(prefix + 8, static_cast<uint8_t>(dtype));
  std::byte* const data = prefix + kActivationPrefixBytes;
  switch (dtype) {
    case WireDtype::kF32:
      return;
    case WireDtype::kBf16:
      return encode_halves(values, data, [](float value) { return f32_to_bf16(value); });
    case WireDtype::kF16:
      return encode_halves(values, data, [](float value) { return f32_to_f16_lane(value); });
    case WireDtype::kInt8:
      return encode_int8(values, row_width, data);
  }
}

Result<std::span<const float>> decode_activations(std::span<const std::byte> payload, int64_t rows, int64_t width,
                                                  std::vector<float>& decoded) {
  ByteReader in(payload);
  const uint32_t found_rows = in.take<uint32_t>();
  const uint32_t found_width = in.take<uint32_t>();
  const uint8_t found_dtype = in.take<uint8_t>();
  uint32_t padding = 0;
  for (const std::byte byte : in.take_bytes(7)) padding |= std::to_integer<uint32_t>(byte);
  if (!in.ok()) return corrupt(cat("payload of ", payload.size(), " bytes"));
  if (found_rows != rows || found_width != width)
    return corrupt(cat(found_rows, " rows of ", found_width, ", expected ", rows, " of ", width));
  if (found_dtype >= kNames.size() || padding != 0)
    return corrupt(cat("number type ", uint32_t{found_dtype}, " does not exist, or padding is not zero"));
  const auto dtype = static_cast<WireDtype>(found_dtype);
  // Both factors have 32 bits, so that the product by 4 does not pass 66; compare what is left by division.
  const uint64_t values = uint64_t{found_rows} * found_width;
  const auto most = static_cast<uint64_t>(std::numeric_limits<int64_t>::max()) / 8;
  if (values > most || in.left() != static_cast<uint64_t>(data_bytes(rows, width, dtype))) {
    return corrupt(cat(in.left(), " bytes of data for ", rows, " rows of ", width, " in ", wire_dtype_name(dtype)));
  }
  const std::byte* const data = payload.data() + kActivationPrefixBytes;
  const auto num_values = static_cast<size_t>(values);
  if (dtype == WireDtype::kF32 && reinterpret_cast<uintptr_t>(data) % alignof(float) == 0)
    return std::span<const float>(reinterpret_cast<const float*>(data), num_values);
  decoded.resize(num_values);
  switch (dtype) {
    case WireDtype::kF32:
      if (num_values > 0) std::memcpy(decoded.data(), data, num_values * sizeof(float));
      break;
    case WireDtype::kBf16:
      decode_halves(data, decoded, [](uint16_t half) { return bf16_to_f32(half); });
      break;
    case WireDtype::kF16:
      decode_halves(data, decoded, [](uint16_t half) { return f16_to_f32_lane(half); });
      break;
    case WireDtype::kInt8:
      if (num_values > 0) decode_int8(data, static_cast<size_t>(width), decoded);
      break;
  }
  return std::span<const float>(decoded);
}

}  // namespace headrace::cluster
