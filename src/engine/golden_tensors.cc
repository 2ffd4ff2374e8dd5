#include "engine/golden_tensors.h"

#include <cstring>

#include "base/error.h"
#include "quant/format.h"

namespace headrace {
namespace {

const TensorView& require(const SafetensorsModel& file, const std::string& path, const std::string& name) {
  const TensorView* tensor = file.find(name);
  if (tensor == nullptr) throw LoadError(path, cat(name, ": missing tensor"));
  return *tensor;
}

}  // namespace

std::vector<float> golden_floats(const SafetensorsModel& file, const std::string& path, const std::string& name) {
  const TensorView& tensor = require(file, path, name);
  if (tensor.dtype != DType::kF32 && tensor.dtype != DType::kF16) {
    throw LoadError(path, cat(name, ": type ", dtype_name(tensor.dtype), ", expected F32 or F16"));
  }
  const int64_t count = num_elements(tensor.shape);
  std::vector<float> values(static_cast<size_t>(count));
  find_format(tensor.dtype)->decode(tensor.bytes.data(), count, values.data());
  return values;
}

std::vector<TokenId> golden_tokens(const SafetensorsModel& file, const std::string& path, const std::string& name) {
  const TensorView& tensor = require(file, path, name);
  if (tensor.dtype != DType::kI64) {
    throw LoadError(path, cat(name, ": type ", dtype_name(tensor.dtype), ", expected I64"));
  }
  std::vector<TokenId> tokens;
  for (size_t at = 0; at < tensor.bytes.size(); at += sizeof(int64_t)) {
    int64_t value = 0;
    std::memcpy(&value, tensor.bytes.data() + at, sizeof value);
    if (value < 0 || value > INT32_MAX) throw LoadError(path, cat(name, ": ", value, " is no token id"));
    tokens.push_back(static_cast<TokenId>(value));
  }
  return tokens;
}

}  // namespace headrace
