#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "client/openai_target.h"

namespace headrace::client {

/// Counts tokens of prompts the way the server does, template and special tokens included: by its /tokenize, else by a
/// straight line through two short requests whose `usage` it reports, else one token a word.
class ServerTokens {
 public:
  /// Finds out which of the three it is.
  ServerTokens(HttpClient& client, OpenAiTarget target);

  /// Whether counts are the server's own and not an estimate.
  [[nodiscard]] bool is_exact() const noexcept { return form_ != Form::kNone; }
  /// "the server's /tokenize"
  [[nodiscard]] std::string_view source() const noexcept;
  [[nodiscard]] int64_t count(std::string_view prompt);
  /// Tokens of a prompt of `words` words, and the opposite: for a first guess.
  [[nodiscard]] double tokens_of_words(double words) const noexcept { return offset_ + slope_ * words; }
  [[nodiscard]] double words_of_tokens(double tokens) const noexcept { return (tokens - offset_) / slope_; }

 private:
  enum class Form { kNone, kMessages, kPrompt, kContent };
  [[nodiscard]] std::optional<int64_t> ask(Form form, std::string_view prompt);
  [[nodiscard]] std::optional<int64_t> count_by_usage(std::string_view prompt);

  HttpClient& client_;
  OpenAiTarget target_;
  Form form_ = Form::kNone;
  bool by_usage_ = false;
  double offset_ = 0, slope_ = 1;
};

/// A text of `tokens` tokens: the first n words that `word(i)` gives, joined by spaces after `prefix`, with n found by
/// counting. Where no n fits exactly, the nearest found.
struct FittedText {
  std::string text;
  int64_t tokens = 0;
};
[[nodiscard]] FittedText fit_text(ServerTokens& tokenizer, std::string_view prefix, int64_t tokens,
                                  const std::function<std::string_view(int64_t)>& word);

}  // namespace headrace::client
