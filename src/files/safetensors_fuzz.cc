#include <cstddef>
#include <cstdint>
#include <span>

#include "base/check.h"
#include "files/safetensors.h"

namespace {

unsigned sum(std::span<const std::byte> bytes) {
  unsigned out = 0;
  for (const std::byte byte : bytes) out += std::to_integer<unsigned>(byte);
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace headrace;
  const SafetensorsContents contents = parse_safetensors("fuzz.safetensors", std::as_bytes(std::span(data, size)));
  volatile unsigned sink = 0;  // keeps the reads
  for (const NamedTensor& tensor : contents.tensors.all()) {
    HR_CHECK(contents.tensors.find(tensor.name) == &tensor.view);
    HR_CHECK(static_cast<int64_t>(tensor.view.bytes.size()) == tensor_bytes(tensor.view.dtype, tensor.view.shape));
    sink = sink + sum(tensor.view.bytes);
  }
  return 0;
}
