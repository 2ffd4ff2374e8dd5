#include "openai/call_object.h"

#include "openai/fields.h"

namespace headrace::openai {
namespace {

/// The text of a JSON string; absent where it is none.
std::optional<std::string> string_of(const std::string& json) {
  const Json parsed = Json::parse(json, nullptr, false);
  return parsed.is_string() ? std::optional(parsed.get<std::string>()) : std::nullopt;
}

}  // namespace

CallObject::Step CallObject::push(char c) {
  if (state_ == State::kInKey || state_ == State::kInValue) return go_on_with_value(c);
  if (is_json_space(c)) return Step::kGoesOn;
  switch (state_) {
    case State::kObject:
      if (c != '{') return Step::kWrong;
      state_ = State::kFirstKey;
      return Step::kGoesOn;
    case State::kFirstKey:
    case State::kKey:
      if (c != '"') return Step::kWrong;
      span_ = {};
      (void)span_.push(c);
      key_ = c;
      state_ = State::kInKey;
      return Step::kGoesOn;
    case State::kColon:
      state_ = State::kValue;
      return c == ':' ? Step::kGoesOn : Step::kWrong;
    case State::kValue:
      return begin_value(c);
    default:
      return after_value(c);
  }
}

CallObject::Step CallObject::begin_value(char c) {
  if ((key_ == "name" && (c != '"' || name_)) || (is_arguments() && (c != '{' || has_arguments_))) return Step::kWrong;
  span_ = {};
  value_.clear();
  has_arguments_ = has_arguments_ || is_arguments();
  state_ = State::kInValue;
  return go_on_with_value(c);
}

CallObject::Step CallObject::go_on_with_value(char c) {
  const JsonSpan::Step step = span_.push(c);
  if (step == JsonSpan::Step::kWrong) return Step::kWrong;
  if (step == JsonSpan::Step::kPast) {
    state_ = State::kNext;
    return is_json_space(c) ? Step::kGoesOn : after_value(c);
  }
  if (state_ == State::kInKey) {
    key_ += c;
    if (step == JsonSpan::Step::kGoesOn) return Step::kGoesOn;
    const std::optional<std::string> key = string_of(key_);
    if (!key) return Step::kWrong;
    key_ = *key;
    state_ = State::kColon;
    return Step::kGoesOn;
  }
  if (is_arguments()) arguments_ += c;
  if (key_ == "name") value_ += c;
  if (step != JsonSpan::Step::kEnds) return Step::kGoesOn;
  state_ = State::kNext;
  if (key_ == "name") name_ = string_of(value_);
  return key_ == "name" && !name_ ? Step::kWrong : Step::kGoesOn;
}

CallObject::Step CallObject::after_value(char c) {
  if (c == '}') return name_ ? Step::kEnds : Step::kWrong;
  state_ = State::kKey;
  return c == ',' ? Step::kGoesOn : Step::kWrong;
}

}  // namespace headrace::openai
