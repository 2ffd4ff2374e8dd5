#include "engine/continuation.h"

#include <gtest/gtest.h>

#include "files/gguf.h"
#include "text/gguf_vocab.h"
#include "text/grammar.h"

namespace headrace {
namespace {

TEST(Continuation, KeepsTheLeadingBlankThatAGrammarAsksFor) {
  // SentencePiece, where the first word of a text stands for itself without the blank of its token.
  const GgufFile file = GgufFile::open(std::string(HR_TEST_DATA) + "/tokenizers/ggml-vocab-phi-3.gguf");
  const Tokenizer tokenizer = Tokenizer::from_gguf("phi-3", vocab_from_gguf(file.metadata()));
  const std::vector<TokenId> ends(tokenizer.end_ids().begin(), tokenizer.end_ids().end());
  const TokenId yes = *tokenizer.token_id("\u2581yes");
  const GrammarFactory grammars(tokenizer, ends);
  const auto text_of = [&](std::optional<GrammarMatcher> grammar) {
    const std::vector<TokenId> prompt{*tokenizer.token_id("<s>")};
    Continuation continuation(SamplingState({}, 1, 0, prompt, ends, std::move(grammar)), tokenizer,
                              {.end_tokens = ends, .max_tokens = 4});
    GenerationEvent event;
    if (continuation.accept({.token = yes}, event)) continuation.end(FinishReason::kLength, event);
    return event.text;
  };
  EXPECT_EQ(text_of(std::nullopt), "yes");
  EXPECT_EQ(text_of(grammars.compile(ChoiceOutput{{" yes"}})), " yes");
}

}  // namespace
}  // namespace headrace
