#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/error.h"
#include "files/chat_template_files.h"
#include "files/json_file.h"
#include "files/safetensors.h"

namespace {
using namespace headrace;

template <class F>
void expect_value_or_error(F f) {
  try {
    f();
  } catch (const Error&) {  // refused
  }
}

}  // namespace

/// The JSON files of a model folder: config, tokenizer_config and the index of a sharded model.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  expect_value_or_error([&] { (void)parse_safetensors_index("index.json", text); });
  expect_value_or_error([&] { (void)chat_templates_of_folder("no-such-folder", text); });
  const Metadata metadata = metadata_from_json("config.json", parse_json("config.json", text));
  for (const auto& [key, value] : metadata.entries()) {
    HR_CHECK(!describe(value).empty());
    expect_value_or_error([&] { (void)metadata.get_int(key); });
    expect_value_or_error([&] { (void)metadata.get_floats(key); });
    expect_value_or_error([&] { (void)metadata.get_strings(key); });
  }
  return 0;
}
