#include "openai/call_reader.h"

#include <algorithm>
#include <utility>

#include "openai/call_id.h"
#include "openai/fields.h"

namespace headrace::openai {

std::string CallReader::new_id() const { return "call_" + random_name(24); }

void CallReader::feed(std::string_view text, MessageDelta& delta) {
  delta_ = &delta;
  for (const char c : text) {
    if (in_content_) {
      read_content(c);
    } else {
      read(c);
    }
  }
  delta_ = nullptr;
}

void CallReader::finish(MessageDelta& delta, bool keep_half) {
  // After a call neither white space is content, nor is a further one that was cut off.
  const bool is_of_calls = num_calls_ > 0 && (!in_content_ || std::ranges::all_of(held_, is_json_space));
  if (keep_half && !is_of_calls) delta.content += held_;
  held_.clear();
}

void CallReader::read_content(char c) {
  held_ += c;
  while (!held_.empty()) {
    size_t white = 0;
    while (white < held_.size() && is_json_space(held_[white])) ++white;
    const std::string_view text = std::string_view(held_).substr(white);
    const auto fits = [&](const std::string& mark) { return mark.starts_with(text); };
    const auto mark = std::ranges::find_if(marks_, fits);
    if (mark != marks_.end()) {
      if (text.size() < mark->size()) return;
      held_ = *mark;  // the white space before it is gone
      leave_content();
      return begin(*mark);
    }
    delta_->content.append(held_, 0, white + 1);
    held_.erase(0, white + 1);
  }
}

void CallReader::give_up(char c) {
  // White space alone stays held: it is dropped before a mark.
  if (!std::ranges::all_of(held_, is_json_space)) delta_->content += std::exchange(held_, {});
  go_to_content();
  read_content(c);
}

void CallReader::break_off(char c) {
  broken_ = broken_ || in_call_;  // its name is out already
  in_call_ = false;
  give_up(c);
}

bool CallReader::read_object(char c) {
  const CallObject::Step step = object_.push(c);
  const bool is_wrong = step == CallObject::Step::kWrong || (object_.name() && !is_tool(*object_.name()));
  if (is_wrong) {
    break_off(c);
    return false;
  }
  if (!in_call_) hold(c);
  if (!in_call_ && object_.name()) begin_call(*object_.name());
  if (in_call_) add_arguments(object_.take_arguments());
  if (step != CallObject::Step::kEnds) return false;
  if (!object_.has_arguments()) add_arguments("{}");
  end_call();
  return true;
}

void CallReader::begin_call(const std::string& name) {
  held_.clear();
  in_call_ = true;
  arguments_.clear();
  delta_->tool_calls.push_back({.index = num_calls_++, .id = new_id(), .name = name});
}

ToolCallDelta& CallReader::call_delta() {
  const int32_t index = num_calls_ - 1;
  if (delta_->tool_calls.empty() || delta_->tool_calls.back().index != index) {
    delta_->tool_calls.push_back({.index = index});
  }
  return delta_->tool_calls.back();
}

void CallReader::add_arguments(std::string_view json) {
  if (json.empty()) return;
  arguments_ += json;
  call_delta().arguments += json;
}

void CallReader::end_call() {
  in_call_ = false;
  broken_ = broken_ || !Json::accept(arguments_);
}

}  // namespace headrace::openai
