#include "files/options_file.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/options_nearest.h"
#include "files/json_file.h"

namespace headrace {
namespace {

constexpr size_t kMaxBytes = 1 << 20;  // a person writes them

const Option& find_option(const std::string& path, const std::string& where, const std::string& key,
                          std::span<const Option> options) {
  const auto found = std::ranges::find_if(options, [&](const Option& option) { return option_key(option) == key; });
  if (found != options.end()) return *found;
  std::vector<std::string> keys;
  for (const Option& option : options) keys.push_back(option_key(option));
  const std::vector<std::string_view> names(keys.begin(), keys.end());
  const std::string_view nearest = nearest_name(key, names);
  throw LoadError(path,
                  cat(where, "unknown key '", key, "'", nearest.empty() ? "" : "; did you mean ", nearest,
                      nearest.empty() ? "" : "?"),
                  ErrorCode::kInvalidArgument);
}

/// A value or a list of values as the command line has it.
std::string text_of(const std::string& path, const std::string& key, const YAML::Node& value) {
  if (value.IsScalar()) return value.Scalar();
  std::string text;
  if (value.IsSequence()) {
    for (const YAML::Node& element : value) {
      if (!element.IsScalar()) break;
      text += cat(text.empty() ? "" : ",", element.Scalar());
    }
  }
  if (text.empty()) {
    throw LoadError(path, cat(key, ": expected a value or a list of values"), ErrorCode::kInvalidArgument);
  }
  return text;
}

YAML::Node load_yaml(const std::string& path) {
  const std::string text = read_text_file(path, kMaxBytes);
  try {
    return YAML::Load(text);
  } catch (const YAML::Exception& error) {
    throw LoadError(path, cat("line ", error.mark.line + 1, ": ", error.msg));
  }
}

/// `where`: of the file, for messages: "" or "nodes, entry 2: ".
void read_options(const std::string& path, const std::string& where, const YAML::Node& lines,
                  std::span<const Option> options) {
  if (!lines.IsMap()) throw LoadError(path, cat(where, "expected lines of the form \"key: value\""));
  std::set<std::string> seen;
  for (const auto& entry : lines) {
    const std::string key = entry.first.IsScalar() ? entry.first.Scalar() : "?";
    const Option& option = find_option(path, where, key, options);
    if (!seen.insert(key).second) throw LoadError(path, cat(where, key, ": given twice"), ErrorCode::kInvalidArgument);
    set_option(option, text_of(path, where + key, entry.second), cat(path, ": ", where, key));
  }
}

}  // namespace

void read_options_file(const std::string& path, std::span<const Option> options) {
  read_options(path, "", load_yaml(path), options);
}

void read_options_list(const std::string& path, std::string_view list,
                       const std::function<std::vector<Option>()>& add) {
  const YAML::Node root = load_yaml(path);
  const std::string key(list);
  if (!root.IsMap() || root.size() != 1 || !root[key] || !root[key].IsSequence() || root[key].size() == 0) {
    throw LoadError(
        path, cat("expected \"", key, ":\" with a list, each entry of the form \"- key: value\", and nothing else"),
        ErrorCode::kInvalidArgument);
  }
  size_t number = 0;
  for (const YAML::Node& entry : root[key]) read_options(path, cat(key, ", entry ", ++number, ": "), entry, add());
}

}  // namespace headrace
