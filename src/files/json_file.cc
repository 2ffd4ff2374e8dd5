#include "files/json_file.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "base/error.h"
#include "files/json_builder.h"
#include "files/mapped_file.h"

namespace headrace {
namespace {

using Json = nlohmann::json;

MetaValue scalar_value(const Json& json) {
  switch (json.type()) {
    case Json::value_t::boolean:
      return {json.get<bool>()};
    case Json::value_t::number_integer:
      return {json.get<int64_t>()};
    case Json::value_t::number_unsigned: {
      const auto value = json.get<uint64_t>();
      if (value > static_cast<uint64_t>(Metadata::kMaxInt)) return {value};
      return {static_cast<int64_t>(value)};
    }
    case Json::value_t::number_float:
      return {json.get<double>()};
    case Json::value_t::string:
      return {json.get_ref<const std::string&>()};
    case Json::value_t::object:
      return {MetaObject{static_cast<int64_t>(json.size())}};
    default:
      return {std::monostate{}};
  }
}

template <class T>
MetaValue flat(const MetaList& list) {
  std::vector<T> out;
  out.reserve(list.size());
  for (const MetaValue& value : list) out.push_back(std::get<T>(value.data));
  return {std::move(out)};
}

MetaValue list_value(const Json& array) {
  MetaList list;
  list.reserve(array.size());
  for (const Json& element : array) list.push_back(element.is_array() ? list_value(element) : scalar_value(element));
  const auto all = [&](auto holds) { return !list.empty() && std::all_of(list.begin(), list.end(), holds); };
  const auto is_int = [](const MetaValue& v) { return std::holds_alternative<int64_t>(v.data); };
  const auto is_number = [&](const MetaValue& v) { return is_int(v) || std::holds_alternative<double>(v.data); };
  if (all([](const MetaValue& v) { return std::holds_alternative<bool>(v.data); })) return flat<bool>(list);
  if (all([](const MetaValue& v) { return std::holds_alternative<std::string>(v.data); })) {
    return flat<std::string>(list);
  }
  if (all(is_int)) return flat<int64_t>(list);
  if (all(is_number)) {
    for (MetaValue& value : list) {
      if (is_int(value)) value.data = static_cast<double>(std::get<int64_t>(value.data));
    }
    return flat<double>(list);
  }
  return {std::move(list)};
}

/// Adds `json` under `key` and, for objects, its members under dotted keys. Depth is bounded by the parser.
void add_flattened(Metadata& metadata, const std::string& key, const Json& json) {
  if (json.is_null()) return;
  metadata.add(key, json.is_array() ? list_value(json) : scalar_value(json));
  if (json.is_object()) {
    for (const auto& [name, member] : json.items()) add_flattened(metadata, cat(key, ".", name), member);
  } else if (json.is_array()) {
    for (size_t i = 0; i < json.size(); ++i) {
      if (json[i].is_object()) add_flattened(metadata, cat(key, ".", i), json[i]);
    }
  }
}

}  // namespace

std::string read_text_file(const std::string& path, size_t max_bytes) {
  const MappedFile file(path);
  if (file.bytes().size() > max_bytes) {
    throw LoadError(path, cat("has ", file.bytes().size(), " bytes, at most ", max_bytes, " are read"));
  }
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

Json parse_json(const std::string& name, std::string_view text) {
  try {
    return JsonBuilder<Json>::build(text, kMaxJsonDepth);
  } catch (const JsonFault& fault) {
    switch (fault.kind) {
      case JsonFault::Kind::kKeyTwice:
        throw LoadError(name, cat(printable(fault.what), ": this key occurs twice"));
      case JsonFault::Kind::kTooDeep:
        throw LoadError(name, cat("JSON nested more than ", kMaxJsonDepth, " deep"));
      case JsonFault::Kind::kSyntax:
        break;
    }
    if (fault.what.empty()) throw LoadError(name, "not JSON");
    // The library's text is "[json.exception...] parse error at line 1, column 5: <what>".
    std::string_view what = fault.what;
    if (const size_t colon = what.find(": "); colon != what.npos) what.remove_prefix(colon + 2);
    throw LoadError(name, cat("byte ", fault.position, ": not JSON: ", what));
  }
}

Json load_json(const std::string& path) { return parse_json(path, read_text_file(path)); }

Metadata metadata_from_json(const std::string& name, const Json& object) {
  if (!object.is_object()) throw LoadError(name, cat("found a JSON ", object.type_name(), ", expected an object"));
  Metadata metadata(name);
  for (const auto& [key, value] : object.items()) add_flattened(metadata, key, value);
  return metadata;
}

}  // namespace headrace
