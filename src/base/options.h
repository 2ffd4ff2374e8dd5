#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace headrace {

/// Where an option's value goes; the type says what text is accepted. The value found there when help is printed is the
/// default. Lists of numbers are written with commas; a list of texts takes one text for each time the flag is given.
using OptionTarget = std::variant<bool*, int32_t*, int64_t*, float*, double*, std::string*, std::optional<uint64_t>*,
                                  std::vector<std::string>*, std::vector<int32_t>*, std::vector<double>*>;

/// Numbers that are accepted, both ends included unless said otherwise; for lists, of each element.
struct OptionRange {
  double min = std::numeric_limits<double>::lowest();
  double max = std::numeric_limits<double>::max();
  bool above_min = false;  ///< min itself is not accepted
};

/// One configuration option: flag, file key, validation and documentation all come from this row.
struct Option {
  std::string_view name;  ///< "max-tokens": flag --max-tokens, key max_tokens
  char letter = 0;        ///< 'n': also -n
  OptionTarget target;
  OptionRange range = {};
  std::vector<std::string_view> choices = {};  ///< the only texts accepted, if any; for lists, for each element
  std::string_view value_name = {};            ///< "N"; empty: by type
  std::string_view default_text = {};          ///< shown in place of the target's value
  std::string_view help;
  bool many = false;  ///< a list of texts that takes all arguments up to the next flag
};

/// "max_tokens": the name in files and requests.
[[nodiscard]] std::string option_key(const Option& option);

/// Whether it is on or off and takes no value.
[[nodiscard]] bool is_switch(const Option& option) noexcept;

/// Reads `text` into the target; lists of texts are appended to. Throws Error(kInvalidArgument):
/// "<shown_as>: 'x' is not what is expected: a number from 0 to 1". `shown_as`: how the user wrote the option.
void set_option(const Option& option, std::string_view text, std::string_view shown_as);

/// Throws the same error if the target's value is outside range or choices: for values that came by another way.
void check_option(const Option& option, std::string_view shown_as);

/// What is accepted: "a number above 0, at most 1", "one of: ref, avx2".
[[nodiscard]] std::string accepted_text(const Option& option);

/// The target's value for documentation; empty where there is none to show.
[[nodiscard]] std::string default_text(const Option& option);

}  // namespace headrace
