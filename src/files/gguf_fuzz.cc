#include <cstddef>
#include <cstdint>
#include <span>

#include "base/check.h"
#include "base/error.h"
#include "files/chat_template_files.h"
#include "files/gguf.h"

namespace {
using namespace headrace;

/// Asks for a value as every type: each getter gives it or throws Error.
void touch_value(const Metadata& metadata, const std::string& key, const MetaValue& value) {
  HR_CHECK(!describe(value).empty());
  const auto try_get = [&](auto get) {
    try {
      get();
    } catch (const LoadError&) {  // has another type
    }
  };
  try_get([&] { (void)metadata.get_int(key, 0, 1000); });
  try_get([&] { (void)metadata.require_float(key, 0.0, 1.0); });
  try_get([&] { (void)metadata.get_bool(key); });
  try_get([&] { (void)metadata.get_string(key); });
  try_get([&] { (void)metadata.get_ints(key); });
  try_get([&] { (void)metadata.get_floats(key); });
  try_get([&] { (void)metadata.get_bools(key); });
  try_get([&] { (void)metadata.get_strings(key); });
  try_get([&] { (void)metadata.list_size(key); });
}

unsigned sum(std::span<const std::byte> bytes) {
  unsigned out = 0;
  for (const std::byte byte : bytes) out += std::to_integer<unsigned>(byte);
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const GgufFile file = GgufFile::parse("fuzz.gguf", std::as_bytes(std::span(data, size)));
  for (const auto& [key, value] : file.metadata().entries()) touch_value(file.metadata(), key, value);
  volatile unsigned sink = 0;  // keeps the reads
  for (const NamedTensor& tensor : file.tensors()) {
    HR_CHECK(file.find(tensor.name) == &tensor.view);
    HR_CHECK(static_cast<int64_t>(tensor.view.bytes.size()) == tensor_bytes(tensor.view.dtype, tensor.view.shape));
    sink = sink + sum(tensor.view.bytes);
  }
  (void)chat_templates_of_gguf(file.metadata());
  return 0;
}
