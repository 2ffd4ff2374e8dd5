#pragma once

#include <optional>
#include <string>
#include <utility>

#include "openai/json_span.h"

namespace headrace::openai {

/// Reads a call that is written as {"name": "...", "arguments": {...}} (or "parameters", in any order, with further
/// members), byte by byte.
class CallObject {
 public:
  enum class Step : uint8_t { kGoesOn, kEnds, kWrong };
  [[nodiscard]] Step push(char c);

  /// Once it is known.
  [[nodiscard]] const std::optional<std::string>& name() const noexcept { return name_; }
  [[nodiscard]] bool has_arguments() const noexcept { return has_arguments_; }
  /// What has come of the arguments since the last time, as it is written.
  [[nodiscard]] std::string take_arguments() { return std::exchange(arguments_, {}); }

 private:
  enum class State : uint8_t { kObject, kFirstKey, kKey, kInKey, kColon, kValue, kInValue, kNext };
  [[nodiscard]] Step begin_value(char c);
  [[nodiscard]] Step go_on_with_value(char c);
  [[nodiscard]] Step after_value(char c);
  [[nodiscard]] bool is_arguments() const { return key_ == "arguments" || key_ == "parameters"; }

  State state_ = State::kObject;
  JsonSpan span_;
  std::string key_;    // of the present member
  std::string value_;  // of the name
  std::optional<std::string> name_;
  std::string arguments_;
  bool has_arguments_ = false;
};

}  // namespace headrace::openai
