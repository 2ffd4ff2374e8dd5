#include "openai/json_span.h"

namespace headrace::openai {

JsonSpan::Step JsonSpan::push(char c) {
  if (in_string_) {
    if (escaped_) {
      escaped_ = false;
    } else if (c == '\\') {
      escaped_ = true;
    } else if (c == '"') {
      in_string_ = false;
      if (open_.empty()) return Step::kEnds;
    }
    return Step::kGoesOn;
  }
  if (in_word_ && (is_json_space(c) || c == ',' || c == '}' || c == ']')) return Step::kPast;
  if (in_word_ && (c == '"' || c == '{' || c == '[' || c == ':')) return Step::kWrong;
  switch (c) {
    case '"':
      in_string_ = true;
      return Step::kGoesOn;
    case '{':
    case '[':
      open_.push_back(c);
      return Step::kGoesOn;
    case '}':
    case ']':
      if (open_.empty() || open_.back() != (c == '}' ? '{' : '[')) return Step::kWrong;
      open_.pop_back();
      return open_.empty() ? Step::kEnds : Step::kGoesOn;
    case ',':
    case ':':
      return open_.empty() ? Step::kWrong : Step::kGoesOn;
    default:
      in_word_ = open_.empty();
      return Step::kGoesOn;
  }
}

}  // namespace headrace::openai
