#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/ids.h"
#include "headrace/structured_output.h"
#include "sample/token_mask.h"
#include "text/tokenizer.h"

namespace headrace {

/// Follows the tokens of an answer up to the place where its structured output begins. Copies share what does not
/// change. Threading: one thread at a time.
class OutputGate {
 public:
  /// Borrows the tokenizer. `end_tokens`: those that end an answer.
  OutputGate(StructuredOutputStart start, const Tokenizer& tokenizer, std::span<const TokenId> end_tokens);

  /// What the structured output has to take at its beginning.
  struct Passed {
    bool begins = false;       ///< with this token; nothing else is set otherwise
    TokenId token = kNoToken;  ///< a mark that is a special token
    std::string text = {};     ///< and the text from there on
  };
  [[nodiscard]] Passed accept(TokenId token);

  /// Whether the next token is the first of the structured output unless it is reasoning_token().
  [[nodiscard]] bool may_begin() const noexcept { return stage_ == Stage::kEither; }
  [[nodiscard]] TokenId reasoning_token() const noexcept { return fixed_->reasoning_token; }
  /// Whether the answer may not end before the structured output.
  [[nodiscard]] bool must_begin() const noexcept { return !fixed_->has_marks; }
  /// Tokens that may not come next.
  [[nodiscard]] std::span<const TokenId> banned_tokens() const noexcept { return fixed_->banned; }

 private:
  enum class Stage : uint8_t { kEither, kOpening, kReasoning, kFree };
  struct Mark {
    std::string text;
    TokenId special = kNoToken;
    bool only_first = false;
  };
  struct Fixed {
    const Tokenizer* tokenizer;
    StructuredOutputStart start;
    std::vector<Mark> marks;
    std::vector<TokenId> banned;
    TokenId reasoning_token = kNoToken;
    size_t longest = 0;  // bytes of a mark
    bool has_marks = false;
  };
  [[nodiscard]] Passed find_mark();
  /// Forgets text that can be no part of a mark.
  void forget();

  std::shared_ptr<const Fixed> fixed_;
  Stage stage_;
  std::string seen_;        // the end of the text, of the present stage
  bool only_white_ = true;  // before seen_ in the free text
};

/// Absent where the structured output begins at once.
[[nodiscard]] std::optional<OutputGate> make_output_gate(const StructuredOutputStart& start, const Tokenizer& tokenizer,
                                                         std::span<const TokenId> end_tokens);

}  // namespace headrace
