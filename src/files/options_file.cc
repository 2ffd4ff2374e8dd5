#include "files/options_file.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/options_nearest.h"
#include "files/json_file.h"
#include "files/name_list.h"

namespace headrace {
namespace {

constexpr size_t kMaxBytes = 1 << 20;  // a person writes them
constexpr size_t kMostKeysShown = 12;  // more make a line that nobody reads

/// "nodes.yaml:3": where a thing is in its file, for messages.
std::string place_of(const std::string& path, const YAML::Node& thing) { return cat(path, ":", thing.Mark().line + 1); }

const Option* find_key(std::span<const Option> options, std::string_view key) {
  const auto found = std::ranges::find_if(options, [&](const Option& one) { return option_key(one) == key; });
  return found == options.end() ? nullptr : &*found;
}

/// The keys that there are, and what is wrong with another one. `top`: those of the file, where this is a section.
LoadError unknown_key(const std::string& place, const std::string& where, const std::string& key,
                      std::span<const Option> options, std::span<const OptionsSection> sections,
                      std::span<const Option> top) {
  if (find_key(top, key) != nullptr) {
    return LoadError(place, cat(where, "unknown key '", key, "'; it stands on top of the file, outside of all groups"),
                     ErrorCode::kInvalidArgument);
  }
  std::vector<std::string> keys;
  for (const Option& option : options) keys.push_back(option_key(option));
  for (const OptionsSection& section : sections) keys.emplace_back(section.key);
  const std::vector<std::string_view> names(keys.begin(), keys.end());
  const std::string_view nearest = nearest_name(key, names);
  const std::string remedy =
      nearest.empty() ? cat("; there are: ", name_list(keys, kMostKeysShown)) : cat("; did you mean ", nearest, "?");
  return LoadError(place, cat(where, "unknown key '", printable(key), "'", remedy), ErrorCode::kInvalidArgument);
}

/// A value or a list of values as the command line has it.
std::string text_of(const std::string& place, const std::string& key, const YAML::Node& value) {
  if (value.IsScalar()) return value.Scalar();
  std::string text;
  if (value.IsSequence()) {
    for (const YAML::Node& element : value) {
      if (!element.IsScalar()) break;
      text += cat(text.empty() ? "" : ",", element.Scalar());
    }
  }
  if (text.empty()) {
    throw LoadError(place, cat(key, ": expected a value or a list of values"), ErrorCode::kInvalidArgument);
  }
  return text;
}

/// Lists of texts take one text at a time, as on a command line.
void set_from(const std::string& place, const std::string& key, const Option& option, const YAML::Node& value) {
  const std::string shown_as = cat(place, ": ", key);
  if (std::holds_alternative<std::vector<std::string>*>(option.target) && value.IsSequence()) {
    for (const YAML::Node& element : value) set_option(option, text_of(place, key, element), shown_as);
    return;
  }
  set_option(option, text_of(place, key, value), shown_as);
}

YAML::Node load_yaml(const std::string& path) {
  const std::string text = read_text_file(path, kMaxBytes);
  try {
    return YAML::Load(text);
  } catch (const YAML::Exception& error) {
    throw LoadError(path, cat("line ", error.mark.line + 1, ": ", error.msg));
  }
}

void read_section(const std::string& path, const YAML::Node& value, const OptionsSection& section,
                  std::span<const Option> top);

/// `where`: of the file, for messages: "" or "nodes, entry 2: ". `top`: the options of the file, in a section.
void read_options(const std::string& path, const std::string& where, const YAML::Node& lines,
                  std::span<const Option> options, std::span<const OptionsSection> sections,
                  std::span<const Option> top) {
  if (!lines.IsMap()) throw LoadError(path, cat(where, "expected lines of the form \"key: value\""));
  std::set<std::string> seen;
  for (const auto& entry : lines) {
    const std::string key = entry.first.IsScalar() ? entry.first.Scalar() : "?";
    const std::string place = place_of(path, entry.first);
    if (!seen.insert(key).second) throw LoadError(place, cat(where, key, ": given twice"), ErrorCode::kInvalidArgument);
    if (const auto section = std::ranges::find(sections, key, &OptionsSection::key); section != sections.end()) {
      read_section(path, entry.second, *section, options);
      continue;
    }
    const Option* const option = find_key(options, key);
    if (option == nullptr) throw unknown_key(place, where, key, options, sections, top);
    set_from(place, where + key, *option, entry.second);
  }
}

void read_section(const std::string& path, const YAML::Node& value, const OptionsSection& section,
                  std::span<const Option> top) {
  if (!section.add) return;
  const std::string key(section.key);
  if (!section.is_list) return read_options(path, cat(key, ": "), value, section.add(), {}, top);
  if (!value.IsSequence() || value.size() == 0) {
    throw LoadError(place_of(path, value), cat(key, ": expected a list, each entry of the form \"- key: value\""),
                    ErrorCode::kInvalidArgument);
  }
  size_t number = 0;
  for (const YAML::Node& entry : value)
    read_options(path, cat(key, ", entry ", ++number, ": "), entry, section.add(), {}, top);
}

}  // namespace

void read_options_file(const std::string& path, std::span<const Option> options,
                       std::span<const OptionsSection> sections) {
  read_options(path, "", load_yaml(path), options, sections, {});
}

}  // namespace headrace
