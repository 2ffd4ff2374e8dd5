#include "files/json_file.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "base/error.h"
#include "files/mapped_file.h"

namespace headrace {
namespace {

using Json = nlohmann::json;

/// Builds the document from the parser's events, which come without recursion; refuses what a plain parse would take.
class Builder : public nlohmann::json_sax<Json> {
 public:
  explicit Builder(const std::string& file) : file_(file) {}

  Json root;

  bool null() override { return put(nullptr); }
  bool boolean(bool value) override { return put(value); }
  bool number_integer(number_integer_t value) override { return put(value); }
  bool number_unsigned(number_unsigned_t value) override { return put(value); }
  bool number_float(number_float_t value, const string_t&) override { return put(value); }
  bool string(string_t& value) override { return put(std::move(value)); }
  bool binary(binary_t&) override { return false; }  // never in text
  bool start_object(size_t) override { return open(Json::object()); }
  bool start_array(size_t) override { return open(Json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(string_t& name) override {
    if (stack_.back()->contains(name)) throw LoadError(file_, cat(printable(name), ": this key occurs twice"));
    key_ = std::move(name);
    return true;
  }
  bool parse_error(size_t position, const std::string&, const nlohmann::detail::exception& error) override {
    // The library's text is "[json.exception...] parse error at line 1, column 5: <what>".
    std::string_view what = error.what();
    if (const size_t colon = what.find(": "); colon != what.npos) what.remove_prefix(colon + 2);
    throw LoadError(file_, cat("byte ", position, ": not JSON: ", what));
  }

 private:
  Json& place(Json value) {
    if (stack_.empty()) return root = std::move(value);
    Json& parent = *stack_.back();
    if (parent.is_object()) return parent[key_] = std::move(value);
    parent.push_back(std::move(value));
    return parent.back();
  }
  template <class T>
  bool put(T&& value) {
    place(Json(std::forward<T>(value)));
    return true;
  }
  bool open(Json empty) {
    if (stack_.size() >= kMaxJsonDepth) throw LoadError(file_, cat("JSON nested more than ", kMaxJsonDepth, " deep"));
    stack_.push_back(&place(std::move(empty)));
    return true;
  }
  bool close() {
    stack_.pop_back();
    return true;
  }

  const std::string& file_;
  std::vector<Json*> stack_;  // open arrays and objects, outermost first; only the last one grows, so they stay put
  std::string key_;
};

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
  Builder builder(name);
  if (!Json::sax_parse(text, &builder)) throw LoadError(name, "not JSON");
  return std::move(builder.root);
}

Json load_json(const std::string& path) { return parse_json(path, read_text_file(path)); }

Metadata metadata_from_json(const std::string& name, const Json& object) {
  if (!object.is_object()) throw LoadError(name, cat("found a JSON ", object.type_name(), ", expected an object"));
  Metadata metadata(name);
  for (const auto& [key, value] : object.items()) add_flattened(metadata, key, value);
  return metadata;
}

}  // namespace headrace
