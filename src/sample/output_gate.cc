#include "sample/output_gate.h"

#include <algorithm>

namespace headrace {
namespace {

constexpr std::string_view kWhiteSpace = " \t\r\n";

}  // namespace

OutputGate::OutputGate(StructuredOutputStart start, const Tokenizer& tokenizer, std::span<const TokenId> end_tokens)
    : stage_(Stage::kFree) {
  auto fixed = std::make_shared<Fixed>();
  fixed->tokenizer = &tokenizer;
  const auto add = [&](const std::vector<std::string>& texts, bool only_first) {
    for (const std::string& text : texts) {
      const std::optional<TokenId> token = tokenizer.token_id(text);
      fixed->marks.push_back({text, token && tokenizer.is_special(*token) ? *token : kNoToken, only_first});
      fixed->longest = std::max(fixed->longest, text.size());
    }
  };
  add(start.marks, false);
  add(start.first_marks, true);
  fixed->has_marks = !fixed->marks.empty();
  fixed->longest = std::max({fixed->longest, start.reasoning_begin.size(), start.reasoning_end.size()});
  if (!start.reasoning_end.empty()) {
    if (start.in_reasoning) {
      stage_ = Stage::kReasoning;
    } else if (fixed->has_marks) {
      stage_ = Stage::kOpening;
    } else {
      // The grammar binds the first token already, so that reasoning can begin only with a token of its own.
      stage_ = Stage::kEither;
      fixed->reasoning_token = tokenizer.token_id(start.reasoning_begin).value_or(kNoToken);
    }
  }
  if (!fixed->has_marks) fixed->banned.assign(end_tokens.begin(), end_tokens.end());
  fixed->start = std::move(start);
  fixed_ = std::move(fixed);
}

OutputGate::Passed OutputGate::accept(TokenId token) {
  const StructuredOutputStart& start = fixed_->start;
  if (stage_ == Stage::kEither) {  // the token that opens the reasoning
    stage_ = Stage::kReasoning;
    return {};
  }
  seen_ += fixed_->tokenizer->token_bytes(token);
  if (stage_ == Stage::kOpening) {
    const size_t begin = std::min(seen_.find_first_not_of(kWhiteSpace), seen_.size());
    const std::string_view text = std::string_view(seen_).substr(begin);
    if (text.starts_with(start.reasoning_begin)) {
      seen_.erase(0, begin + start.reasoning_begin.size());
      stage_ = Stage::kReasoning;
    } else if (!start.reasoning_begin.starts_with(text)) {
      stage_ = Stage::kFree;
    }
  }
  if (stage_ == Stage::kReasoning) {
    const size_t end = seen_.find(start.reasoning_end);
    if (end != std::string::npos) {
      seen_.erase(0, end + start.reasoning_end.size());
      stage_ = Stage::kFree;
      if (!fixed_->has_marks) {
        seen_.erase(0, std::min(seen_.find_first_not_of(kWhiteSpace), seen_.size()));
        return {.begins = true, .text = seen_};
      }
    }
  }
  Passed passed;
  if (stage_ == Stage::kFree) passed = find_mark();
  forget();
  return passed;
}

OutputGate::Passed OutputGate::find_mark() {
  const size_t first_text = only_white_ ? seen_.find_first_not_of(kWhiteSpace) : std::string::npos;
  size_t found = std::string::npos;
  const Mark* which = nullptr;
  for (const Mark& mark : fixed_->marks) {
    const size_t at = seen_.find(mark.text);
    const bool counts = at != std::string::npos && (!mark.only_first || at == first_text);
    if (counts && at < found) {
      found = at;
      which = &mark;
    }
  }
  if (which == nullptr) return {};
  Passed passed{.begins = true, .token = which->special, .text = seen_.substr(found)};
  if (which->special != kNoToken) passed.text.erase(0, which->text.size());
  seen_.erase(0, found + 1);  // were this no beginning after all, the next one is looked for behind it
  only_white_ = false;
  return passed;
}

void OutputGate::forget() {
  if (stage_ == Stage::kOpening || seen_.size() < fixed_->longest) return;
  const size_t surplus = seen_.size() - (fixed_->longest - 1);
  if (stage_ == Stage::kFree) only_white_ = only_white_ && seen_.find_first_not_of(kWhiteSpace) >= surplus;
  seen_.erase(0, surplus);
}

std::optional<OutputGate> make_output_gate(const StructuredOutputStart& start, const Tokenizer& tokenizer,
                                           std::span<const TokenId> end_tokens) {
  if (start.marks.empty() && start.first_marks.empty() && start.reasoning_end.empty()) return std::nullopt;
  OutputGate gate(start, tokenizer, end_tokens);
  const bool begins_at_once = gate.may_begin() && gate.reasoning_token() == kNoToken;
  return begins_at_once ? std::nullopt : std::optional<OutputGate>(std::move(gate));
}

}  // namespace headrace
