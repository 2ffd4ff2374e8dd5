#include "tensor/tensor.h"

#include "base/cat.h"

namespace headrace {

std::string shape_text(const Shape& shape) {
  std::string out = "[";
  for (size_t i = 0; i < shape.size(); ++i) out += cat(i ? "," : "", shape[i]);
  return out + "]";
}

int64_t num_elements(const Shape& shape) noexcept {
  int64_t n = 1;
  for (const int64_t size : shape) {
    if (size < 0 || __builtin_mul_overflow(n, size, &n)) return -1;
  }
  return n;
}

int64_t tensor_bytes(DType dtype, const Shape& shape) noexcept {
  const DTypeInfo& info = dtype_info(dtype);
  const int64_t n = num_elements(shape);
  if (n < 0) return -1;
  if (info.block_elems > 1 && (shape.empty() || shape.back() % info.block_elems != 0)) return -1;
  int64_t bytes = 0;
  return __builtin_mul_overflow(n / info.block_elems, static_cast<int64_t>(info.block_bytes), &bytes) ? -1 : bytes;
}

}  // namespace headrace
