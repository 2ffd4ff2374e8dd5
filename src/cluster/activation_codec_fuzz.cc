#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "cluster/activation_codec.h"

using namespace headrace;
using namespace headrace::cluster;

/// A payload that decodes, with the rows and width that it names itself, has as many values and, but for int8, whose
/// scales another encoder may choose otherwise, and NaN, which become quiet, encodes to the same bytes.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::span<const std::byte> payload(reinterpret_cast<const std::byte*>(data), size);
  if (size < kActivationPrefixBytes) return 0;
  uint32_t rows = 0;
  uint32_t width = 0;
  std::memcpy(&rows, data, sizeof(rows));
  std::memcpy(&width, data + 4, sizeof(width));
  std::vector<float> decoded;
  const Result<std::span<const float>> values = decode_activations(payload, rows, width, decoded);
  if (!values) return 0;
  if (values.value().size() != uint64_t{rows} * width) std::abort();
  double sum = 0;
  for (const float value : values.value()) sum += value;
  const auto dtype = static_cast<WireDtype>(data[8]);
  if (width == 0 || dtype == WireDtype::kInt8 || sum != sum) return 0;
  std::vector<std::byte> again;
  encode_activations(values.value(), width, dtype, again);
  if (dtype == WireDtype::kF32) {
    const auto bytes = std::as_bytes(values.value());
    again.insert(again.end(), bytes.begin(), bytes.end());
  }
  if (again.size() != size || std::memcmp(again.data(), data, size) != 0) std::abort();
  return 0;
}
