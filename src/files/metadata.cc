#include "files/metadata.h"

#include <cmath>
#include <utility>

#include "base/cat.h"
#include "base/error.h"

namespace headrace {
namespace {

template <class... Ts>
struct Overloaded : Ts... {
  using Ts::operator()...;
};

/// An empty list has no element type, so it is an empty list of each.
bool is_empty_list(const MetaValue& value) noexcept {
  const auto* list = std::get_if<MetaList>(&value.data);
  return list != nullptr && list->empty();
}

std::string int_range(int64_t min, int64_t max) {
  if (min == Metadata::kMinInt && max == Metadata::kMaxInt) return "an integer";
  if (max == Metadata::kMaxInt) return cat("an integer of at least ", min);
  return cat("an integer from ", min, " to ", max);
}

std::string float_range(double min, double max) {
  if (min == std::numeric_limits<double>::lowest() && max == std::numeric_limits<double>::max()) {
    return "a finite number";
  }
  if (max == std::numeric_limits<double>::max()) return cat("a finite number of at least ", min);
  return cat("a number from ", min, " to ", max);
}

}  // namespace

std::string describe(const MetaValue& value) {
  return std::visit(
      Overloaded{
          [](bool v) { return std::string(v ? "true" : "false"); },
          [](int64_t v) { return cat("the integer ", v); },
          [](uint64_t v) { return cat("the integer ", v); },
          [](double v) { return cat("the number ", v); },
          [](const std::string& v) { return cat("the string \"", printable(v, 60), "\""); },
          [](const std::vector<bool>& v) { return cat("a list of ", v.size(), " booleans"); },
          [](const std::vector<int64_t>& v) { return cat("a list of ", v.size(), " integers"); },
          [](const std::vector<double>& v) { return cat("a list of ", v.size(), " numbers"); },
          [](const std::vector<std::string>& v) { return cat("a list of ", v.size(), " strings"); },
          [](const MetaList& v) { return v.empty() ? std::string("an empty list") : cat("a list of ", v.size()); },
          [](const MetaObject&) { return std::string("an object"); },
          [](std::monostate) { return std::string("null"); },
      },
      value.data);
}

void Metadata::add(std::string key, MetaValue value) {
  const auto [it, added] = entries_.try_emplace(std::move(key), std::move(value));
  if (!added) fail(it->first, "this key occurs twice");
}

const MetaValue* Metadata::find(std::string_view key) const noexcept {
  const auto it = entries_.find(key);
  return it == entries_.end() ? nullptr : &it->second;
}

std::optional<int64_t> Metadata::get_int(std::string_view key, int64_t min, int64_t max) const {
  const MetaValue* value = find(key);
  if (value == nullptr) return std::nullopt;
  const auto* number = std::get_if<int64_t>(&value->data);
  if (number == nullptr || *number < min || *number > max) wrong_type(key, *value, int_range(min, max));
  return *number;
}

std::optional<double> Metadata::get_float(std::string_view key) const {
  const MetaValue* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (const auto* v = std::get_if<double>(&value->data)) return *v;
  if (const auto* v = std::get_if<int64_t>(&value->data)) return static_cast<double>(*v);
  if (const auto* v = std::get_if<uint64_t>(&value->data)) return static_cast<double>(*v);
  wrong_type(key, *value, "a number");
}

std::optional<bool> Metadata::get_bool(std::string_view key) const {
  const MetaValue* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (const auto* v = std::get_if<bool>(&value->data)) return *v;
  wrong_type(key, *value, "true or false");
}

std::optional<std::string> Metadata::get_string(std::string_view key) const {
  const MetaValue* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (const auto* v = std::get_if<std::string>(&value->data)) return *v;
  wrong_type(key, *value, "a string");
}

std::optional<std::span<const int64_t>> Metadata::get_ints(std::string_view key) const {
  const MetaValue* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (is_empty_list(*value)) return std::span<const int64_t>{};
  if (const auto* v = std::get_if<std::vector<int64_t>>(&value->data)) return *v;
  wrong_type(key, *value, "a list of integers");
}

std::optional<std::vector<double>> Metadata::get_floats(std::string_view key) const {
  const MetaValue* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (is_empty_list(*value)) return std::vector<double>{};
  if (const auto* v = std::get_if<std::vector<double>>(&value->data)) return *v;
  if (const auto* v = std::get_if<std::vector<int64_t>>(&value->data)) return std::vector<double>(v->begin(), v->end());
  wrong_type(key, *value, "a list of numbers");
}

std::optional<std::vector<bool>> Metadata::get_bools(std::string_view key) const {
  const MetaValue* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (is_empty_list(*value)) return std::vector<bool>{};
  if (const auto* v = std::get_if<std::vector<bool>>(&value->data)) return *v;
  wrong_type(key, *value, "a list of booleans");
}

std::optional<std::span<const std::string>> Metadata::get_strings(std::string_view key) const {
  const MetaValue* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (is_empty_list(*value)) return std::span<const std::string>{};
  if (const auto* v = std::get_if<std::vector<std::string>>(&value->data)) return *v;
  wrong_type(key, *value, "a list of strings");
}

std::optional<int64_t> Metadata::list_size(std::string_view key) const {
  const MetaValue* value = find(key);
  if (value == nullptr) return std::nullopt;
  return std::visit(
      [&](const auto& v) -> int64_t {
        using T = std::decay_t<decltype(v)>;
        if constexpr (requires { v.size(); } && !std::is_same_v<T, std::string>) return static_cast<int64_t>(v.size());
        wrong_type(key, *value, "a list");
      },
      value->data);
}

int64_t Metadata::require_int(std::string_view key, int64_t min, int64_t max) const {
  const auto value = get_int(key, min, max);
  if (!value) missing(key, int_range(min, max));
  return *value;
}

double Metadata::require_float(std::string_view key, double min, double max) const {
  const auto value = get_float(key);
  if (!value) missing(key, float_range(min, max));
  if (!std::isfinite(*value) || *value < min || *value > max) wrong_type(key, *find(key), float_range(min, max));
  return *value;
}

std::string Metadata::require_string(std::string_view key) const {
  auto value = get_string(key);
  if (!value) missing(key, "a string");
  return std::move(*value);
}

std::span<const std::string> Metadata::require_strings(std::string_view key) const {
  const auto value = get_strings(key);
  if (!value) missing(key, "a list of strings");
  return *value;
}

void Metadata::fail(std::string_view key, std::string_view what) const {
  throw LoadError(source_, cat(printable(key), ": ", what));
}

void Metadata::wrong_type(std::string_view key, const MetaValue& found, std::string_view expected) const {
  fail(key, cat("found ", describe(found), ", expected ", expected));
}

void Metadata::missing(std::string_view key, std::string_view expected) const {
  fail(key, cat("is missing, expected ", expected));
}

}  // namespace headrace
