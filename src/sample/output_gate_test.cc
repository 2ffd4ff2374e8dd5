// Where structured output begins within an answer.
#include "sample/output_gate.h"

#include <gtest/gtest.h>

#include "sample/grammar_processor.h"
#include "text/tiny_vocab.h"

namespace headrace {
namespace {

class Gate : public ::testing::Test {
 protected:
  [[nodiscard]] TokenId token(std::string_view piece) const { return *tokenizer_.token_id(piece); }
  /// A byte of the answer.
  [[nodiscard]] TokenId byte(char c) const { return c == ' ' ? token("Ġ") : token(std::string(1, c)); }
  /// The text that the structured output begins with, once `text` has come byte by byte; "-" where it has not begun.
  [[nodiscard]] std::string begun(OutputGate gate, std::string_view text) const {
    for (size_t i = 0; i < text.size(); ++i) {
      const OutputGate::Passed passed = gate.accept(byte(text[i]));
      if (!passed.begins) continue;
      return std::to_string(i + 1) + passed.text;
    }
    return "-";
  }
  [[nodiscard]] OutputGate gate(const StructuredOutputStart& start) const {
    return OutputGate(start, tokenizer_, std::vector<TokenId>{end_});
  }

  Tokenizer tokenizer_ = Tokenizer::from_gguf("tiny", tiny_byte_level_vocab("gpt-2"));
  TokenId end_ = *tokenizer_.eos();
  GrammarFactory factory_{tokenizer_, std::vector<TokenId>{end_}};
};

TEST_F(Gate, OpensAtAMark) {
  const OutputGate marks = gate({.marks = {"(ab"}, .first_marks = {"[ab"}});
  EXPECT_EQ(begun(marks, "xx((ab"), "6(ab");
  EXPECT_EQ(begun(marks, "  [ab"), "5[ab");
  EXPECT_EQ(begun(marks, "            [ab"), "15[ab") << "more white space than a mark is long";
  EXPECT_EQ(begun(marks, "x [ab"), "-");
  EXPECT_EQ(begun(marks, "            x   [ab"), "-");
  EXPECT_FALSE(marks.must_begin());
  EXPECT_TRUE(marks.banned_tokens().empty());
}

TEST_F(Gate, TakesTheTextOfTheTokenThatCompletesTheMark) {
  OutputGate marks = gate({.marks = {"(1"}});
  EXPECT_FALSE(marks.accept(byte('(')).begins);
  const OutputGate::Passed passed = marks.accept(token("1a!"));
  EXPECT_TRUE(passed.begins);
  EXPECT_EQ(passed.text, "(1a!");
  OutputGate special = gate({.marks = {"<|bos|>"}});
  EXPECT_EQ(begun(special, "<|bos|>"), "7") << "its name stands for the token";
  const OutputGate::Passed by_token = special.accept(token("<|bos|>"));
  EXPECT_TRUE(by_token.begins);
  EXPECT_EQ(by_token.token, token("<|bos|>"));
  EXPECT_EQ(by_token.text, "");
}

TEST_F(Gate, StaysClosedDuringReasoning) {
  const StructuredOutputStart start{.reasoning_begin = "<r>", .reasoning_end = "</r>", .marks = {"("}};
  EXPECT_EQ(begun(gate(start), " <r>(a</r>b("), "12(");
  EXPECT_EQ(begun(gate(start), "<x(b"), "3(");
  StructuredOutputStart open = start;
  open.in_reasoning = true;
  EXPECT_EQ(begun(gate(open), "(a</r>("), "7(");
  open.marks.clear();
  const OutputGate must = gate(open);
  EXPECT_EQ(begun(must, "(a</r>"), "6");
  EXPECT_TRUE(must.must_begin());
  EXPECT_EQ(must.banned_tokens().size(), 1u);
  EXPECT_FALSE(must.may_begin());
}

TEST_F(Gate, IsAbsentWhereTheOutputBeginsAtOnce) {
  const std::vector<TokenId> ends{end_};
  EXPECT_FALSE(make_output_gate({}, tokenizer_, ends));
  EXPECT_FALSE(make_output_gate({.reasoning_begin = "no token", .reasoning_end = "x"}, tokenizer_, ends));
  EXPECT_TRUE(make_output_gate({.reasoning_begin = "<tool>", .reasoning_end = "x"}, tokenizer_, ends));
}

class GatedGrammar : public Gate {
 protected:
  [[nodiscard]] std::vector<TokenId> allowed(GrammarProcessor& processor) const {
    std::vector<float> logits(static_cast<size_t>(tokenizer_.vocab_size()));
    processor.prepare();
    processor.apply(logits);
    std::vector<TokenId> tokens;
    for (size_t i = 0; i < logits.size(); ++i) {
      if (logits[i] == 0) tokens.push_back(static_cast<TokenId>(i));
    }
    return tokens;
  }
  [[nodiscard]] GrammarProcessor processor(const std::string& pattern, const StructuredOutputStart& start) const {
    return GrammarProcessor(factory_.compile(RegexOutput{pattern}), gate(start));
  }
};

TEST_F(GatedGrammar, BindsFromTheMarkOn) {
  GrammarProcessor bound = processor("\\(1?b", {.marks = {"("}});
  EXPECT_FALSE(bound.is_active());
  EXPECT_EQ(allowed(bound).size(), static_cast<size_t>(tokenizer_.vocab_size()));
  for (const char c : {'x', ' ', '('}) bound.accept(byte(c));
  EXPECT_TRUE(bound.is_active());
  EXPECT_EQ(allowed(bound), (std::vector<TokenId>{byte('1'), byte('b')}));
  bound.accept(byte('b'));
  EXPECT_TRUE(bound.is_finished());
}

TEST_F(GatedGrammar, StaysFreeWhereTheMarkGoesOnAsNoneOfTheTexts) {
  GrammarProcessor bound = processor("11b", {.marks = {"1"}});
  bound.accept(token("a1!"));
  EXPECT_FALSE(bound.is_active());
  EXPECT_EQ(bound.failure(), "");
  bound.accept(token("11"));
  EXPECT_EQ(allowed(bound), (std::vector<TokenId>{byte('b')}));
}

TEST_F(GatedGrammar, MayBeginWithReasoningInstead) {
  GrammarProcessor bound = processor("b+", {.reasoning_begin = "<tool>", .reasoning_end = "!"});
  EXPECT_EQ(allowed(bound), (std::vector<TokenId>{byte('b'), token("<tool>")}));
  GrammarProcessor reasons = bound;
  reasons.accept(token("<tool>"));
  EXPECT_FALSE(reasons.binds());
  EXPECT_EQ(allowed(reasons).size(), static_cast<size_t>(tokenizer_.vocab_size()) - 1) << "it may not end here";
  reasons.accept(byte('x'));
  reasons.accept(token("a!Ġ"));
  EXPECT_EQ(allowed(reasons), (std::vector<TokenId>{byte('b')}));
  bound.accept(byte('b'));
  EXPECT_EQ(allowed(bound), (std::vector<TokenId>{byte('b'), end_}));
}

}  // namespace
}  // namespace headrace
