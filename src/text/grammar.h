#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/ids.h"
#include "headrace/structured_output.h"
#include "text/tokenizer.h"

struct HrGrammar;
struct HrGrammarFactory;

namespace headrace {

/// A text that is being written so that it fits a schema, a pattern or a grammar: which tokens may come next. Copies
/// are independent of each other. Threading: one thread at a time; copies may be used at once.
class GrammarMatcher {
 public:
  GrammarMatcher(const GrammarMatcher& other);
  GrammarMatcher& operator=(const GrammarMatcher& other);
  GrammarMatcher(GrammarMatcher&&) noexcept;
  GrammarMatcher& operator=(GrammarMatcher&&) noexcept;
  ~GrammarMatcher();

  /// Sets bit i % 32 of bits[i / 32] where token i may come next, and clears all others. The tokens that end a text are
  /// among them where the text may end, and no others where it must. Special tokens are not, unless the grammar names
  /// them as such ("<|tool|>" in Lark). All bits are clear when the matcher has failed. Allocates; 5 to 300
  /// microseconds, so best called while the model computes.
  void compute_mask(std::span<uint32_t> bits);
  /// Goes on by one token; false, and no change, for one that may not come next.
  [[nodiscard]] bool accept(TokenId token);
  /// Goes on by a text, whatever tokens it was cut into; false, and no change, for one that may not come next. Costs a
  /// copy of the matcher.
  [[nodiscard]] bool accept_text(std::string_view text);
  /// Whether the text so far is one of those that are wanted.
  [[nodiscard]] bool may_end();
  /// Whether nothing can follow: the text is complete, or an end token has come.
  [[nodiscard]] bool is_finished() const noexcept;
  /// Tokens that compute_mask has something to say about.
  [[nodiscard]] int32_t vocab_size() const noexcept { return vocab_size_; }
  /// Why the matcher cannot go on (a grammar too complex for its limits, or one that no token of the vocabulary
  /// continues); empty while it can.
  [[nodiscard]] const std::string& failure() const noexcept { return failure_; }

 private:
  friend class GrammarFactory;
  struct Free {
    void operator()(HrGrammar* grammar) const noexcept;
  };
  GrammarMatcher(HrGrammar* owned, int32_t vocab_size) : rust_(owned), vocab_size_(vocab_size) {}

  std::unique_ptr<HrGrammar, Free> rust_;
  int32_t vocab_size_;
  std::string failure_;
};

/// Compiles what an answer must be. Made once for a vocabulary (some 0.2 s for 49000 tokens, 0.7 s for 150000), so best
/// when the first request needs it. Threading: any number of threads at once.
class GrammarFactory {
 public:
  /// `end_tokens`: those that end a text. Throws Error kInternal only for a bug in the library.
  GrammarFactory(const Tokenizer& tokenizer, std::span<const TokenId> end_tokens);
  GrammarFactory(GrammarFactory&&) noexcept;
  GrammarFactory& operator=(GrammarFactory&&) noexcept;
  ~GrammarFactory();

  /// `spec` is not std::monostate. Some milliseconds; limits: 128 KiB of text, 16 KiB of a pattern or a Lark
  /// grammar, groups nested 64 deep. At the limits a compiler may take 3 seconds.
  /// Throws Error(kInvalidArgument) with the compiler's words for what it does not understand or support.
  [[nodiscard]] GrammarMatcher compile(const StructuredOutput& spec) const;

 private:
  struct Free {
    void operator()(HrGrammarFactory* factory) const noexcept;
  };
  std::unique_ptr<HrGrammarFactory, Free> rust_;
  int32_t vocab_size_;
};

}  // namespace headrace
