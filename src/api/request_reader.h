#pragma once

#include <memory>
#include <mutex>
#include <optional>

#include "api/chat_prompt.h"
#include "engine/active_request.h"
#include "headrace/generation.h"
#include "text/grammar.h"

namespace headrace {

/// Turns requests into what the engine computes: tokens of the prompt, a compiled grammar, a seed. Borrows the
/// tokenizer. Threading: any number of threads at once.
class RequestReader {
 public:
  /// `chat`: nullptr for a model without a chat template; `model_name` is for messages.
  /// `vocab_size`: tokens that may be sampled.
  RequestReader(std::string model_name, const Tokenizer& tokenizer, int32_t vocab_size,
                std::span<const TokenId> end_tokens, const ChatPrompt* chat);

  /// Throws Error for parameters out of their range, a grammar that does not compile, and a conversation that the
  /// template refuses.
  [[nodiscard]] GenerationInput read(Request request);
  /// The chat template; throws Error(kUnsupported) where there is none.
  [[nodiscard]] const ChatPrompt& chat() const;

 private:
  [[nodiscard]] GrammarMatcher compile(const StructuredOutput& output);

  std::string model_name_;
  const Tokenizer& tokenizer_;
  int32_t vocab_size_;
  std::vector<TokenId> end_tokens_;
  const ChatPrompt* chat_;
  std::once_flag factory_once_;
  std::optional<GrammarFactory> factory_;  // made for the first grammar: it takes a while
};

}  // namespace headrace
