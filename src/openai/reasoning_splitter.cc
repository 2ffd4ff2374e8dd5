#include "openai/reasoning_splitter.h"

#include <algorithm>
#include <utility>

namespace headrace::openai {
namespace {

constexpr std::string_view kWhiteSpace = " \t\r\n";

/// Bytes at the end of `text` that may be the beginning of `mark`.
size_t begun_mark(std::string_view text, std::string_view mark) {
  size_t length = std::min(text.size(), mark.size() - 1);
  while (!text.ends_with(mark.substr(0, length))) --length;
  return length;
}

}  // namespace

std::string ReasoningSplitter::feed(std::string_view text, std::string& reasoning) {
  held_ += text;
  while (state_ != State::kAnswer && advance(reasoning)) {
  }
  return state_ == State::kAnswer ? std::exchange(held_, {}) : std::string();
}

bool ReasoningSplitter::advance(std::string& reasoning) {
  const size_t first = held_.find_first_not_of(kWhiteSpace);
  switch (state_) {
    case State::kStart: {
      const std::string_view mark = kThinkBegin;
      if (first == std::string::npos) return false;
      const std::string_view rest = std::string_view(held_).substr(first);
      if (rest.size() < mark.size() && mark.starts_with(rest)) return false;
      const bool is_marked = rest.starts_with(mark);
      if (is_marked) held_.erase(0, first + mark.size());
      state_ = is_marked || is_open_ ? State::kReasoning : State::kAnswer;
      return true;
    }
    case State::kReasoning: {
      const size_t end = held_.find(kThinkEnd);
      if (end == std::string::npos) {
        give_out(begun_mark(held_, kThinkEnd), reasoning);
        return false;
      }
      give_out(held_.size() - end, reasoning);
      held_.erase(0, held_.find(kThinkEnd) + std::string_view(kThinkEnd).size());
      state_ = State::kBehind;
      return true;
    }
    case State::kBehind:
      held_.erase(0, std::min(first, held_.size()));
      if (held_.empty()) return false;
      state_ = State::kAnswer;
      return true;
    case State::kAnswer:
      break;
  }
  return false;
}

void ReasoningSplitter::give_out(size_t keep, std::string& reasoning) {
  if (!has_begun_) {
    const size_t white = std::min(held_.find_first_not_of(kWhiteSpace), held_.size());
    held_.erase(0, std::min(white, held_.size() - keep));
  }
  const std::string_view ready = std::string_view(held_).substr(0, held_.size() - keep);
  const size_t last = ready.find_last_not_of(kWhiteSpace);
  if (last == std::string_view::npos) return;
  has_begun_ = true;
  reasoning += ready.substr(0, last + 1);
  held_.erase(0, last + 1);
}

std::string ReasoningSplitter::finish(std::string& reasoning) {
  if (state_ == State::kReasoning || (state_ == State::kStart && is_open_)) {
    if (held_.find_first_not_of(kWhiteSpace) != std::string::npos) reasoning += held_;
    held_.clear();
  }
  return std::exchange(held_, {});
}

}  // namespace headrace::openai
