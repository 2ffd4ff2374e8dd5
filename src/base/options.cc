#include "base/options.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <type_traits>

#include "base/cat.h"
#include "base/error.h"

namespace headrace {
namespace {

template <class T>
struct ElementOf {
  using type = T;
};
template <class T>
struct ElementOf<std::vector<T>> {
  using type = T;
};
template <class T>
struct ElementOf<std::optional<T>> {
  using type = T;
};

/// Calls fn with a value of the element type of the target: int32_t for a list of int32_t.
template <class Fn>
auto visit_type(const Option& option, Fn fn) {
  return std::visit(
      [&](auto* target) { return fn(typename ElementOf<std::remove_pointer_t<decltype(target)>>::type{}); },
      option.target);
}

bool is_list(const Option& option) noexcept {
  return std::holds_alternative<std::vector<int32_t>*>(option.target) ||
         std::holds_alternative<std::vector<double>*>(option.target) ||
         std::holds_alternative<std::vector<std::string>*>(option.target);
}

bool in_range(const OptionRange& range, double value) {
  return value <= range.max && (range.above_min ? value > range.min : value >= range.min);
}

bool is_choice(const Option& option, std::string_view text) {
  return option.choices.empty() || std::ranges::find(option.choices, text) != option.choices.end();
}

[[noreturn]] void refuse(const Option& option, std::string_view text, std::string_view shown_as) {
  throw Error(ErrorCode::kInvalidArgument, cat(shown_as, ": '", printable(text), "' is not ", accepted_text(option)));
}

/// The whole text as a number of type T; nullopt where it is none, does not fit, or is not finite.
template <class T>
std::optional<T> parse_number(std::string_view text) {
  T value{};
  if (!text.empty() && text.front() == '+') text.remove_prefix(1);
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  if constexpr (std::is_floating_point_v<T>) {
    if (!std::isfinite(value)) return std::nullopt;
  }
  return value;
}

template <class T>
T require_number(const Option& option, std::string_view text, std::string_view shown_as) {
  const std::optional<T> value = parse_number<T>(text);
  if (!value || !in_range(option.range, static_cast<double>(*value))) refuse(option, text, shown_as);
  return *value;
}

/// `--api-key-file "$KEYS"` with a variable that is not set must not open the door, nor --workers "$WORKERS" leave the
/// model on one machine.
void require_something(const Option& option, std::string_view text, std::string_view shown_as) {
  static constexpr std::string_view kNamesOfThings[] = {"FILE", "FOLDER",    "ADDRESS",    "URL",   "ORIGIN",
                                                        "NAME", "HOST:PORT", "WORKER,...", "MODEL", "LIST"};
  if (!text.empty() || std::ranges::find(kNamesOfThings, option.value_name) == std::end(kNamesOfThings)) return;
  throw Error(ErrorCode::kInvalidArgument,
              cat(shown_as, ": found an empty text, expected ", option.value_name, "; or leave the option out"));
}

std::string require_text(const Option& option, std::string_view text, std::string_view shown_as) {
  if (!is_choice(option, text)) refuse(option, text, shown_as);
  return std::string(text);
}

/// Whole numbers in full: 16777216, not 1.67772e+07.
std::string number_text(double value) {
  const bool is_whole = value == std::floor(value) && std::abs(value) < 1e15;
  return is_whole ? fmt::format("{:.0f}", value) : fmt::format("{:g}", value);
}

}  // namespace

std::string option_key(const Option& option) {
  std::string key(option.name);
  std::ranges::replace(key, '-', '_');
  return key;
}

bool is_switch(const Option& option) noexcept { return std::holds_alternative<bool*>(option.target); }

void set_option(const Option& option, std::string_view text, std::string_view shown_as) {
  std::visit(
      [&](auto* target) {
        using T = std::remove_pointer_t<decltype(target)>;
        if constexpr (std::is_same_v<T, bool>) {
          if (text != "true" && text != "false") refuse(option, text, shown_as);
          *target = text == "true";
        } else if constexpr (std::is_same_v<T, std::string>) {
          require_something(option, text, shown_as);
          *target = require_text(option, text, shown_as);
        } else if constexpr (std::is_same_v<T, std::vector<std::string>>) {
          if (option.choices.empty()) {
            require_something(option, text, shown_as);
            target->emplace_back(text);
            return;
          }
          for (size_t from = 0; from <= text.size();) {
            const size_t comma = std::min(text.find(',', from), text.size());
            target->push_back(require_text(option, text.substr(from, comma - from), shown_as));
            from = comma + 1;
          }
        } else if constexpr (std::is_same_v<T, std::vector<int32_t>> || std::is_same_v<T, std::vector<double>>) {
          T values;
          for (size_t from = 0; from <= text.size();) {
            const size_t comma = std::min(text.find(',', from), text.size());
            values.push_back(require_number<typename T::value_type>(option, text.substr(from, comma - from), shown_as));
            from = comma + 1;
          }
          *target = std::move(values);
        } else if constexpr (std::is_same_v<T, std::optional<uint64_t>>) {
          *target = require_number<uint64_t>(option, text, shown_as);
        } else {
          *target = require_number<T>(option, text, shown_as);
        }
      },
      option.target);
}

void check_option(const Option& option, std::string_view shown_as) {
  const auto check = [&](const auto& value) {
    using T = std::decay_t<decltype(value)>;
    if constexpr (std::is_same_v<T, std::string>) {
      if (!is_choice(option, value)) refuse(option, value, shown_as);
    } else if constexpr (std::is_arithmetic_v<T> && !std::is_same_v<T, bool>) {
      if (!in_range(option.range, static_cast<double>(value))) {
        refuse(option, number_text(static_cast<double>(value)), shown_as);
      }
    }
  };
  std::visit(
      [&](const auto* target) {
        using T = std::decay_t<decltype(*target)>;
        if constexpr (std::is_same_v<T, std::vector<std::string>> || std::is_same_v<T, std::vector<int32_t>> ||
                      std::is_same_v<T, std::vector<double>>) {
          for (const auto& element : *target) check(element);
        } else if constexpr (std::is_same_v<T, std::optional<uint64_t>>) {
          if (*target) check(**target);
        } else {
          check(*target);
        }
      },
      option.target);
}

std::string accepted_text(const Option& option) {
  if (!option.choices.empty()) {
    std::string text = is_list(option) ? "made of these, with commas:" : "one of:";
    for (size_t i = 0; i < option.choices.size(); ++i) text += cat(i == 0 ? " " : ", ", option.choices[i]);
    return text;
  }
  std::string text = visit_type(option, [&](auto element) -> std::string {
    using T = decltype(element);
    if constexpr (std::is_same_v<T, bool>) return "true or false";
    if constexpr (std::is_same_v<T, std::string>) return "a text";
    if constexpr (std::is_integral_v<T>) {
      // Tighten the bounds that the row leaves open to those of the type: -1 is no uint64_t.
      if (std::is_unsigned_v<T> && option.range.min < 0) return "an integer from 0 to 2^64-1";
      return is_list(option) ? "a list of integers with commas, each" : "an integer";
    }
    return is_list(option) ? "a list of numbers with commas, each" : "a number";
  });
  const OptionRange& range = option.range;
  const bool has_min = range.min != OptionRange{}.min;
  const bool has_max = range.max != OptionRange{}.max;
  if (has_min && has_max && !range.above_min) {
    text += cat(" from ", number_text(range.min), " to ", number_text(range.max));
  } else if (has_min) {
    text += range.above_min ? cat(" above ", number_text(range.min)) : cat(", at least ", number_text(range.min));
    if (has_max) text += cat(", at most ", number_text(range.max));
  } else if (has_max) {
    text += cat(", at most ", number_text(range.max));
  }
  return text;
}

std::string default_text(const Option& option) {
  if (!option.default_text.empty()) return std::string(option.default_text);
  return std::visit(
      [&](const auto* target) -> std::string {
        using T = std::decay_t<decltype(*target)>;
        if constexpr (std::is_same_v<T, bool>) {
          return *target ? "on" : "";
        } else if constexpr (std::is_same_v<T, std::string>) {
          return *target;
        } else if constexpr (std::is_same_v<T, std::optional<uint64_t>>) {
          return *target ? cat(**target) : "";
        } else if constexpr (std::is_arithmetic_v<T>) {
          return cat(*target);
        } else {
          std::string text;
          for (const auto& element : *target) text += cat(text.empty() ? "" : ",", element);
          return text;
        }
      },
      option.target);
}

}  // namespace headrace
