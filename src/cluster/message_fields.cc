#include "cluster/message_fields.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"

namespace headrace::cluster {
namespace {

[[noreturn]] void refuse(const char* field, const std::string& found, const std::string& expected) {
  throw Error(ErrorCode::kCorrupt, cat("control message: ", field, ": found ", found, ", expected ", expected));
}

/// What a value is, short.
std::string found(const nlohmann::json& value) {
  if (value.is_number()) return printable(value.dump());
  if (value.is_array()) return cat("an array of ", value.size());
  if (value.is_string()) return cat("a string of ", value.get_ref<const std::string&>().size(), " bytes");
  return cat("JSON ", value.type_name());
}

const nlohmann::json& at(const nlohmann::json& object, const char* field) {
  if (!object.is_object()) refuse(field, found(object), "an object that has it");
  const auto place = object.find(field);
  if (place == object.end()) refuse(field, "no such field", "one");
  return *place;
}

}  // namespace

int64_t as_integer(const nlohmann::json& value, const char* field, int64_t least, int64_t most) {
  // A number beyond int64_t would wrap around.
  const bool fits = value.is_number_integer() && !(value.is_number_unsigned() && value.get<uint64_t>() > INT64_MAX);
  const int64_t number = fits ? value.get<int64_t>() : 0;
  if (!fits || number < least || number > most)
    refuse(field, found(value), cat("an integer from ", least, " to ", most));
  return number;
}

int64_t read_integer(const nlohmann::json& object, const char* field, int64_t least, int64_t most) {
  return as_integer(at(object, field), field, least, most);
}

double read_number(const nlohmann::json& object, const char* field, double least, double most) {
  const nlohmann::json& value = at(object, field);
  const double number = value.is_number() ? value.get<double>() : NAN;
  if (!(number >= least && number <= most)) refuse(field, found(value), cat("a number from ", least, " to ", most));
  return number;
}

bool read_bool(const nlohmann::json& object, const char* field) {
  const nlohmann::json& value = at(object, field);
  if (!value.is_boolean()) refuse(field, found(value), "true or false");
  return value.get<bool>();
}

std::string as_text(const nlohmann::json& value, const char* field, size_t max_bytes) {
  if (!value.is_string() || value.get_ref<const std::string&>().size() > max_bytes) {
    refuse(field, found(value), cat("a text of at most ", max_bytes, " bytes"));
  }
  return value.get<std::string>();
}

std::string read_text(const nlohmann::json& object, const char* field, size_t max_bytes) {
  return as_text(at(object, field), field, max_bytes);
}

const nlohmann::json& read_array(const nlohmann::json& object, const char* field, size_t least, size_t most) {
  const nlohmann::json& value = at(object, field);
  if (!value.is_array() || value.size() < least || value.size() > most) {
    refuse(field, found(value), cat("an array of ", least, " to ", most, " values"));
  }
  return value;
}

const nlohmann::json& read_object(const nlohmann::json& object, const char* field) {
  const nlohmann::json& value = at(object, field);
  if (!value.is_object()) refuse(field, found(value), "an object");
  return value;
}

}  // namespace headrace::cluster
