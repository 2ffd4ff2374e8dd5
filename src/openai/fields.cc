#include "openai/fields.h"

#include <cmath>
#include <limits>

#include "base/cat.h"
#include "base/error.h"
#include "files/json_builder.h"
#include "files/json_file.h"

namespace headrace::openai {
namespace {

[[noreturn]] void refuse_value(const std::string& path, const Json& found, std::string_view expected) {
  std::string shown = to_text(found);
  if (shown.size() > 60) shown = std::string(found.type_name());
  throw RequestError("invalid_value", path, cat(path, ": found ", printable(shown), ", expected ", expected));
}

}  // namespace

Json parse_body(std::string_view text) {
  try {
    Json body = JsonBuilder<Json>::build(text, kMaxJsonDepth);
    if (!body.is_object()) throw RequestError("invalid_json", "", "the body is not a JSON object");
    return body;
  } catch (const JsonFault& fault) {
    switch (fault.kind) {
      case JsonFault::Kind::kKeyTwice:
        throw RequestError("invalid_json", fault.what,
                           cat("the key '", printable(fault.what), "' stands twice in one object"));
      case JsonFault::Kind::kTooDeep:
        throw RequestError("invalid_json", "", cat("the body has more than ", kMaxJsonDepth, " levels"));
      case JsonFault::Kind::kSyntax:
        break;
    }
    // The library's text is "[json.exception...] parse error at line 1, column 5: <what>".
    const size_t begins = fault.what.find("] ");
    const std::string what = begins == std::string::npos ? fault.what : fault.what.substr(begins + 2);
    throw RequestError("invalid_json", "", cat("the body is not JSON: ", printable(what)));
  }
}

std::string to_text(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

Fields::Fields(const Json& object, std::string where) : object_(&object), where_(std::move(where)) {
  if (!object.is_object()) refuse_value(where_, object, "an object");
}

std::string Fields::path(std::string_view name) const {
  return where_.empty() ? std::string(name) : cat(where_, ".", name);
}

void Fields::refuse(std::string_view name, std::string_view expected) const {
  const auto found = object_->find(std::string(name));
  refuse_value(path(name), found == object_->end() ? Json() : *found, expected);
}

const Json* Fields::find(std::string_view name) const {
  const auto found = object_->find(std::string(name));
  return found == object_->end() || found->is_null() ? nullptr : &*found;
}

std::optional<bool> Fields::boolean(std::string_view name) const {
  const Json* value = find(name);
  if (value == nullptr) return std::nullopt;
  if (!value->is_boolean()) refuse(name, "true or false");
  return value->get<bool>();
}

std::optional<double> Fields::number(std::string_view name) const {
  const Json* value = find(name);
  if (value == nullptr) return std::nullopt;
  if (!value->is_number() || !std::isfinite(value->get<double>())) refuse(name, "a number");
  return value->get<double>();
}

std::optional<int64_t> Fields::integer(std::string_view name, int64_t min, int64_t max) const {
  const Json* value = find(name);
  if (value == nullptr) return std::nullopt;
  const std::string expected = cat("an integer from ", min, " to ", max);
  if (!value->is_number_integer()) refuse(name, expected);
  const bool too_large = value->is_number_unsigned() &&
                         value->get<uint64_t>() > static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
  if (too_large || value->get<int64_t>() < min || value->get<int64_t>() > max) refuse(name, expected);
  return value->get<int64_t>();
}

std::optional<std::string> Fields::string(std::string_view name) const {
  const Json* value = find(name);
  if (value == nullptr) return std::nullopt;
  if (!value->is_string()) refuse(name, "a string");
  return value->get<std::string>();
}

std::optional<std::string> Fields::choice(std::string_view name, std::span<const std::string_view> choices) const {
  const std::optional<std::string> value = string(name);
  if (!value) return std::nullopt;
  std::string expected = "one of:";
  for (const std::string_view one : choices) {
    if (*value == one) return value;
    expected += cat(" ", one);
  }
  refuse(name, expected);
}

std::vector<std::string> Fields::strings(std::string_view name) const {
  const Json* value = find(name);
  if (value == nullptr) return {};
  if (value->is_string()) return {value->get<std::string>()};
  if (!value->is_array()) refuse(name, "a string or a list of strings");
  std::vector<std::string> all;
  for (const Json& item : *value) {
    if (!item.is_string()) refuse(name, "a string or a list of strings");
    all.push_back(item.get<std::string>());
  }
  return all;
}

std::vector<int32_t> token_ids_of(const Json& array, const std::string& path) {
  std::vector<int32_t> ids;
  if (!array.is_array()) refuse_value(path, array, "a list of token ids");
  ids.reserve(array.size());
  for (const Json& item : array) {
    const bool is_id = item.is_number_integer() && item.get<int64_t>() >= 0 &&
                       item.get<int64_t>() <= std::numeric_limits<int32_t>::max();
    if (!is_id) refuse_value(path, item, "token ids, integers from 0 on");
    ids.push_back(item.get<int32_t>());
  }
  return ids;
}

std::vector<int32_t> Fields::token_ids(std::string_view name) const {
  const Json* value = find(name);
  return value == nullptr ? std::vector<int32_t>{} : token_ids_of(*value, path(name));
}

const Json* Fields::array(std::string_view name) const {
  const Json* value = find(name);
  if (value != nullptr && !value->is_array()) refuse(name, "a list");
  return value;
}

const Json* Fields::object(std::string_view name) const {
  const Json* value = find(name);
  if (value != nullptr && !value->is_object()) refuse(name, "an object");
  return value;
}

}  // namespace headrace::openai
