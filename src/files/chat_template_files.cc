#include "files/chat_template_files.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "files/json_file.h"

namespace headrace {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr std::string_view kDefault = "default";

/// Keeps the first of a name: callers add in order of precedence.
void add(std::vector<ChatTemplate>& templates, std::string_view name, std::string text) {
  const bool known = std::any_of(templates.begin(), templates.end(), [&](const auto& t) { return t.name == name; });
  if (!known) templates.push_back({std::string(name), std::move(text)});
}

void add_from_config(std::vector<ChatTemplate>& templates, const std::string& file, const Json& value) {
  if (value.is_null()) return;
  if (value.is_string()) return add(templates, kDefault, value.get<std::string>());
  if (!value.is_array()) throw LoadError(file, "chat_template: expected a string or a list of {name, template}");
  for (const Json& entry : value) {
    const auto text_of = [&](const char* key) {
      const auto it = entry.is_object() ? entry.find(key) : entry.end();
      if (it == entry.end() || !it->is_string()) {
        throw LoadError(file, cat("chat_template: an entry without a string \"", key, "\""));
      }
      return it->get<std::string>();
    };
    add(templates, text_of("name"), text_of("template"));
  }
}

void put_default_first(std::vector<ChatTemplate>& templates) {
  std::stable_partition(templates.begin(), templates.end(), [](const auto& t) { return t.name == kDefault; });
}

}  // namespace

std::vector<ChatTemplate> chat_templates_of_gguf(const Metadata& metadata) {
  constexpr std::string_view kKey = "tokenizer.chat_template";
  std::vector<ChatTemplate> templates;
  if (auto text = metadata.get_string(kKey)) add(templates, kDefault, std::move(*text));
  const std::string prefix = cat(kKey, ".");
  for (auto it = metadata.entries().lower_bound(prefix); it != metadata.entries().end(); ++it) {
    if (!it->first.starts_with(prefix)) break;
    add(templates, it->first.substr(prefix.size()), *metadata.get_string(it->first));
  }
  return templates;
}

std::vector<ChatTemplate> chat_templates_of_folder(const std::string& folder, std::string_view tokenizer_config) {
  std::vector<ChatTemplate> templates;
  std::error_code ignored;
  const fs::path jinja = fs::path(folder) / "chat_template.jinja";
  if (fs::exists(jinja, ignored)) add(templates, kDefault, read_text_file(jinja.string()));
  std::vector<fs::path> additional;
  for (const auto& entry : fs::directory_iterator(fs::path(folder) / "additional_chat_templates", ignored)) {
    if (entry.path().extension() == ".jinja") additional.push_back(entry.path());
  }
  std::sort(additional.begin(), additional.end());
  for (const fs::path& path : additional) add(templates, path.stem().string(), read_text_file(path.string()));
  if (!tokenizer_config.empty()) {
    const std::string file = (fs::path(folder) / "tokenizer_config.json").string();
    const Json config = parse_json(file, tokenizer_config);
    if (!config.is_object()) throw LoadError(file, cat("found a JSON ", config.type_name(), ", expected an object"));
    if (const auto it = config.find("chat_template"); it != config.end()) add_from_config(templates, file, *it);
  }
  put_default_first(templates);
  return templates;
}

}  // namespace headrace
