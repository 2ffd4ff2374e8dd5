#pragma once

#include <string>

namespace headrace {

/// Path of a model on the hub, "hf:ORG/NAME[@REVISION][:FILE]", fetched into the cache of the hub's own tools where it
/// is not there: a .gguf (the first of a split set), or a folder with config.json, .safetensors and the tokenizer.
/// FILE is a .gguf of the repository or the name of a quantization that one of them bears; without it see
/// choose_files(). The environment says from where and by whom (HubSettings). Each file's digest is checked. When the
/// hub cannot be reached, or HF_HUB_OFFLINE forbids to ask, what was fetched before is used. Progress goes to standard
/// error. Throws LoadError: one line that names what failed and how to mend it.
[[nodiscard]] std::string fetch_hub_model(const std::string& argument);

}  // namespace headrace
