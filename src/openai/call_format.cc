#include "openai/call_format.h"

#include <array>

#include "base/cat.h"
#include "openai/fields.h"

namespace headrace::openai {

std::span<const CallFormat* const> call_formats() {
  static const std::array<const CallFormat*, 4> kFormats{&hermes_calls(), &llama3_calls(), &mistral_list_calls(),
                                                         &mistral_named_calls()};
  return kFormats;
}

// Lark's texts have the escapes of JSON's.
std::string lark_text(std::string_view text) { return to_text(Json(text)); }

std::string object_head(const Tool& tool, std::string_view key) {
  return cat("{\"name\": \"", tool.name, "\", \"", key, "\": ");
}

std::string object_rules(std::span<const Tool> tools, std::string_view key) {
  std::string rule = "tool: ";
  for (size_t i = 0; i < tools.size(); ++i) {
    rule += cat(i == 0 ? "" : " | ", lark_text(object_head(tools[i], key)), " %json ", tools[i].parameters, " \"}\"");
  }
  return rule + "\n";
}

}  // namespace headrace::openai
