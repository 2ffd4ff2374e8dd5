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

const Option& find_option(const std::string& path, const std::string& key, std::span<const Option> options) {
  const auto found = std::ranges::find_if(options, [&](const Option& option) { return option_key(option) == key; });
  if (found != options.end()) return *found;
  std::vector<std::string> keys;
  for (const Option& option : options) keys.push_back(option_key(option));
  const std::vector<std::string_view> names(keys.begin(), keys.end());
  const std::string_view nearest = nearest_name(key, names);
  throw LoadError(
      path,
      cat("unknown key '", key, "'", nearest.empty() ? "" : "; did you mean ", nearest, nearest.empty() ? "" : "?"),
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

}  // namespace

void read_options_file(const std::string& path, std::span<const Option> options) {
  const std::string text = read_text_file(path, kMaxBytes);
  YAML::Node root;
  try {
    root = YAML::Load(text);
  } catch (const YAML::Exception& error) {
    throw LoadError(path, cat("line ", error.mark.line + 1, ": ", error.msg));
  }
  if (!root.IsMap()) throw LoadError(path, "expected lines of the form \"key: value\"");
  std::set<std::string> seen;
  for (const auto& entry : root) {
    const std::string key = entry.first.IsScalar() ? entry.first.Scalar() : "?";
    const Option& option = find_option(path, key, options);
    if (!seen.insert(key).second) throw LoadError(path, cat(key, ": given twice"), ErrorCode::kInvalidArgument);
    set_option(option, text_of(path, key, entry.second), cat(path, ": ", key));
  }
}

}  // namespace headrace
