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

[[noreturn]] void refuse(const std::string& place, const std::string& what) {
  throw LoadError(place, what, ErrorCode::kInvalidArgument);
}

/// Keys and lists that were left empty are no values: "threads:" may be the line of one that is still to be filled in.
void require_something(const std::string& place, const std::string& key, const YAML::Node& value) {
  if (value.IsNull()) refuse(place, cat(key, ": nothing stands after it; give a value, or leave the key out"));
  if (value.IsSequence() && value.size() == 0) {
    refuse(place, cat(key, ": an empty list; give its values, or leave the key out"));
  }
}

/// A value or a list of values as the command line has it.
std::string text_of(const std::string& place, const std::string& key, const YAML::Node& value) {
  require_something(place, key, value);
  if (value.IsScalar()) return value.Scalar();
  std::string text;
  if (!value.IsSequence()) refuse(place, cat(key, ": expected a value or a list of values"));
  for (const YAML::Node& element : value) {
    if (!element.IsScalar())
      refuse(place, cat(key, ": expected a list of values, found one with something else in it"));
    text += cat(text.empty() ? "" : ",", element.Scalar());
  }
  return text;
}

/// Lists of texts take one text at a time, as on a command line.
void set_from(const std::string& place, const std::string& key, const Option& option, const YAML::Node& value) {
  require_something(place, key, value);
  const std::string shown_as = cat(place, ": ", key);
  if (std::holds_alternative<std::vector<std::string>*>(option.target) && value.IsSequence()) {
    for (const YAML::Node& element : value) set_option(option, text_of(place, key, element), shown_as);
    return;
  }
  set_option(option, text_of(place, key, value), shown_as);
}

YAML::Node load_yaml(const std::string& path) {
  const std::string text = read_text_file(path, kMaxBytes);
  std::vector<YAML::Node> documents;
  try {
    documents = YAML::LoadAll(text);
  } catch (const YAML::Exception& error) {
    // The parser names what it stumbled over, which may stand after what is wrong, or be the end of the file.
    throw LoadError(path,
                    cat("line ", error.mark.line + 1, ": ", error.msg,
                        "; expected YAML (lines \"key: value\", groups indented by blanks) or JSON: see this line and "
                        "those before it"),
                    ErrorCode::kInvalidArgument);
  }
  if (documents.size() > 1) refuse(path, "more than one document; leave out the lines \"---\" between them");
  return documents.empty() ? YAML::Node() : documents.front();
}

void read_section(const std::string& path, const std::string& place, const YAML::Node& value,
                  const OptionsSection& section, std::span<const Option> top);

/// `where`: of the file, for messages: "" or "nodes, entry 2: ". `top`: the options of the file, in a section.
void read_options(const std::string& path, const std::string& where, const YAML::Node& lines,
                  std::span<const Option> options, std::span<const OptionsSection> sections,
                  std::span<const Option> top) {
  if (!lines.IsMap()) refuse(path, cat(where, "expected lines of the form \"key: value\""));
  std::set<std::string> seen;
  for (const auto& entry : lines) {
    const std::string key = entry.first.IsScalar() ? entry.first.Scalar() : "?";
    const std::string place = place_of(path, entry.first);
    if (!seen.insert(key).second) throw LoadError(place, cat(where, key, ": given twice"), ErrorCode::kInvalidArgument);
    if (const auto section = std::ranges::find(sections, key, &OptionsSection::key); section != sections.end()) {
      read_section(path, place, entry.second, *section, options);
      continue;
    }
    const Option* const option = find_key(options, key);
    if (option == nullptr) throw unknown_key(place, where, key, options, sections, top);
    set_from(place, where + key, *option, entry.second);
  }
}

/// `place`: of its key.
void read_section(const std::string& path, const std::string& place, const YAML::Node& value,
                  const OptionsSection& section, std::span<const Option> top) {
  if (!section.add) return;
  const std::string key(section.key);
  if (value.IsNull()) refuse(place, cat(key, ": nothing stands below it; give its keys, or leave it out"));
  if (!section.is_list) {
    if (!value.IsMap()) refuse(place, cat(key, ": expected lines of the form \"key: value\""));
    return read_options(path, cat(key, ": "), value, section.add(place), {}, top);
  }
  if (!value.IsSequence() || value.size() == 0) {
    refuse(place, cat(key, ": expected a list, each entry of the form \"- key: value\""));
  }
  size_t number = 0;
  for (const YAML::Node& entry : value) {
    const std::string where = cat(key, ", entry ", ++number, ": ");
    const std::string entry_place = entry.IsNull() ? place : place_of(path, entry);
    if (!entry.IsMap()) refuse(entry_place, cat(where, "expected lines of the form \"key: value\""));
    read_options(path, where, entry, section.add(entry_place), {}, top);
  }
}

}  // namespace

void read_options_file(const std::string& path, std::span<const Option> options,
                       std::span<const OptionsSection> sections) {
  read_options(path, "", load_yaml(path), options, sections, {});
}

}  // namespace headrace
