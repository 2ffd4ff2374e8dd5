#pragma once

#include <string>
#include <vector>

namespace headrace {

enum class GoldenKind : uint8_t {
  kModel,          ///< a model with its own golden
  kOtherModel,     ///< a model's golden without the model
  kTexts,          ///< texts and chats of a model that lies elsewhere
  kQuant,          ///< a folder of quantised blocks
  kTokenizers,     ///< a folder of GGUF vocabularies with .inp and .out
  kTokenizerJson,  ///< a folder with tokenizer.json and its golden
  kTemplates,      ///< a folder of chat templates with renderings
  kNothing,        ///< nothing that could be tried: `problem` says why
};

/// Something that eval can try.
struct GoldenItem {
  GoldenKind kind = GoldenKind::kNothing;
  std::string name;
  std::string path = {};         ///< the model, or the folder
  std::string safetensors = {};  ///< golden.safetensors of models and texts
  std::string json = {};         ///< golden.json
  std::string problem = {};
};

/// What there is to try at `path`: a .gguf with NAME.golden.* beside it, a folder of one of the kinds above, or a
/// folder with such folders and files in it, at any depth; sorted by path. Never empty and never throws: what cannot be
/// tried is an item too.
[[nodiscard]] std::vector<GoldenItem> find_goldens(const std::string& path);

}  // namespace headrace
