#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "files/metadata.h"

namespace headrace {

/// A chat template that comes with a model; `name` is "default" for the one that is used unless another is asked for.
struct ChatTemplate {
  std::string name;
  std::string text;
};

/// Those of GGUF metadata: tokenizer.chat_template and tokenizer.chat_template.NAME.
[[nodiscard]] std::vector<ChatTemplate> chat_templates_of_gguf(const Metadata& metadata);

/// Those of a Hugging Face folder: chat_template.jinja, which goes before "chat_template" of tokenizer_config.json (a
/// string or a list of {name, template}), and additional_chat_templates/NAME.jinja. `tokenizer_config` is the text of
/// that file, empty where there is none.
[[nodiscard]] std::vector<ChatTemplate> chat_templates_of_folder(const std::string& folder,
                                                                 std::string_view tokenizer_config);

}  // namespace headrace
