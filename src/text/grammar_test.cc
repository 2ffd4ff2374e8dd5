#include "text/grammar.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <string_view>

#include "base/cat.h"
#include "base/error.h"
#include "text/tiny_vocab.h"

namespace headrace {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::StartsWith;

/// A vocabulary and its grammars; the end token is "<|im_end|>".
class Grammar : public ::testing::Test {
 protected:
  using Mask = std::vector<uint32_t>;

  static bool has(const Mask& mask, TokenId token) {
    return (mask[static_cast<size_t>(token) / 32] >> (token % 32) & 1) != 0;
  }
  Mask mask_of(GrammarMatcher& matcher) const {
    Mask mask((static_cast<size_t>(tokenizer_.vocab_size()) + 31) / 32);
    matcher.compute_mask(mask);
    return mask;
  }
  std::vector<TokenId> allowed(GrammarMatcher& matcher) const {
    const Mask mask = mask_of(matcher);
    std::vector<TokenId> tokens;
    for (TokenId token = 0; token < tokenizer_.vocab_size(); ++token) {
      if (has(mask, token)) tokens.push_back(token);
    }
    return tokens;
  }
  /// Writes a text by drawing among the allowed tokens until one ends it.
  std::string write(GrammarMatcher matcher, uint32_t seed) const {
    constexpr int kMostTokens = 3000;
    std::mt19937 random(seed);
    std::string text;
    for (int i = 0; i < kMostTokens; ++i) {
      const std::vector<TokenId> tokens = allowed(matcher);
      if (tokens.empty()) {
        ADD_FAILURE() << "no token continues " << text << ": " << matcher.failure();
        return text;
      }
      const TokenId token = tokens[random() % tokens.size()];
      EXPECT_TRUE(matcher.accept(token)) << token << " after " << text;
      if (token == end_) {
        EXPECT_TRUE(matcher.is_finished());
        return text;
      }
      EXPECT_FALSE(tokenizer_.is_special(token)) << token;
      text += tokenizer_.token_bytes(token);
    }
    ADD_FAILURE() << "no end: " << text;
    return text;
  }
  std::string refusal(const StructuredOutput& spec) const {
    try {
      static_cast<void>(factory_.compile(spec));
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
      return error.message();
    }
    return "";
  }

  Tokenizer tokenizer_ = Tokenizer::from_gguf("tiny", tiny_byte_level_vocab("gpt-2"));
  TokenId end_ = *tokenizer_.eos();
  GrammarFactory factory_{tokenizer_, std::vector<TokenId>{end_}};
};

TEST_F(Grammar, ChoiceIsExactlyOneOfTheTexts) {
  const std::vector<std::string> choices{"a", "a1", "\"quoted\\\n\"", "größer", " !!", "<|im_end|>"};
  const GrammarMatcher matcher = factory_.compile(ChoiceOutput{choices});
  std::set<std::string> seen;
  for (uint32_t seed = 0; seed < 100; ++seed) seen.insert(write(matcher, seed));
  EXPECT_EQ(seen, std::set<std::string>(choices.begin(), choices.end()));
}

TEST_F(Grammar, RegexMatchesAsAWhole) {
  const GrammarMatcher matcher = factory_.compile(RegexOutput{R"([a-c]{2}-(11|!)?[^"\\1!]x)"});
  std::set<std::string> seen;
  for (uint32_t seed = 0; seed < 50; ++seed) {
    const std::string text = write(matcher, seed);
    ASSERT_GE(text.size(), 5u) << text;
    EXPECT_TRUE(text[0] >= 'a' && text[0] <= 'c' && text[1] >= 'a' && text[1] <= 'c' && text[2] == '-') << text;
    std::string_view rest = std::string_view(text).substr(3);
    if (rest.starts_with("11")) rest.remove_prefix(2);
    if (rest.starts_with('!')) rest.remove_prefix(1);
    EXPECT_EQ(rest.find_first_of("\"\\1!"), rest.npos) << text;
    const auto characters = std::ranges::count_if(rest, [](char c) { return (c & 0xc0) != 0x80; });
    EXPECT_EQ(characters, 2) << text;
    EXPECT_TRUE(rest.ends_with('x')) << text;
    seen.insert(text);
  }
  EXPECT_GT(seen.size(), 25u);
}

TEST_F(Grammar, LarkGrammar) {
  const GrammarMatcher matcher = factory_.compile(GrammarOutput{"start: \"(\" inner \")\"\ninner: /[a1]/ | start"});
  for (uint32_t seed = 0; seed < 20; ++seed) {
    const std::string text = write(matcher, seed);
    const size_t depth = text.size() / 2;
    EXPECT_EQ(text.size() % 2, 1u) << text;
    EXPECT_EQ(text.substr(0, depth), std::string(depth, '('));
    EXPECT_EQ(text.substr(depth + 1), std::string(depth, ')'));
  }
}

const std::string kSchema = R"({
  "type": "object", "additionalProperties": false,
  "required": ["name", "age", "tags", "where"],
  "properties": {
    "name": {"type": "string", "minLength": 1, "maxLength": 8},
    "age": {"type": "integer", "minimum": 0, "maximum": 150},
    "tags": {"type": "array", "maxItems": 3, "items": {"enum": ["a1", "!", 7, null]}},
    "where": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/place"}]}
  },
  "$defs": {"place": {"type": "object", "additionalProperties": false, "required": ["x"],
                      "properties": {"x": {"type": "boolean"}}}}
})";

size_t longest_white_space(const std::string& text) {
  size_t longest = 0, run = 0;
  for (const char c : text) {
    run = c == ' ' || c == '\n' || c == '\t' || c == '\r' ? run + 1 : 0;
    longest = std::max(longest, run);
  }
  return longest;
}

TEST_F(Grammar, JsonFitsItsSchema) {
  const GrammarMatcher matcher = factory_.compile(JsonSchemaOutput{kSchema});
  size_t longest = 0;
  for (uint32_t seed = 0; seed < 50; ++seed) {
    const std::string text = write(matcher, seed);
    const json value = json::parse(text, nullptr, false);
    ASSERT_TRUE(value.is_object()) << text;
    ASSERT_EQ(value.size(), 4u) << text;
    const auto name = value.at("name").get<std::string>();
    const auto characters = std::ranges::count_if(name, [](char c) { return (c & 0xc0) != 0x80; });
    EXPECT_TRUE(characters >= 1 && characters <= 8) << text;
    ASSERT_TRUE(value.at("age").is_number_integer()) << text;
    const auto age = value.at("age").get<int64_t>();
    EXPECT_TRUE(age >= 0 && age <= 150) << text;
    EXPECT_LE(value.at("tags").size(), 3u) << text;
    for (const json& tag : value.at("tags")) {
      const std::string tag_text = tag.dump();
      EXPECT_TRUE(tag_text == "\"a1\"" || tag_text == "\"!\"" || tag_text == "7" || tag_text == "null") << text;
    }
    const json& where = value.at("where");
    EXPECT_TRUE(where.is_null() || (where.size() == 1 && where.at("x").is_boolean())) << text;
    longest = std::max(longest, longest_white_space(text));
  }
  EXPECT_LE(longest, 8u);
  EXPECT_GE(longest, 4u);  // it is allowed, and these seeds write some
}

TEST_F(Grammar, JsonObjectIsAnObject) {
  const GrammarMatcher matcher = factory_.compile(JsonObjectOutput{});
  GrammarMatcher copy = matcher;
  EXPECT_FALSE(copy.accept(*tokenizer_.token_id("[")));
  EXPECT_FALSE(copy.may_end());
  for (const char* piece : {"{", "\"", "a", "\"", ":", "1", "}"}) {
    EXPECT_FALSE(copy.is_finished());
    ASSERT_TRUE(copy.accept(*tokenizer_.token_id(piece))) << piece;
  }
  EXPECT_TRUE(copy.may_end());
}

TEST_F(Grammar, SchemasOwnWhiteSpaceOptionsDoNotCount) {
  const GrammarMatcher matcher =
      factory_.compile(JsonSchemaOutput{R"({"type": "array", "minItems": 2, "maxItems": 2, "items": {"const": 1},
                           "x-guidance": {"whitespace_pattern": "[ ]{100}"}})"});
  for (uint32_t seed = 0; seed < 20; ++seed) EXPECT_LE(longest_white_space(write(matcher, seed)), 8u);
}

TEST_F(Grammar, WhiteSpaceOfSchemasWithinLarkIsBounded) {
  const GrammarMatcher matcher = factory_.compile(GrammarOutput{
      R"x(start: "%json {" /%json \// list // no %json here, and no "
list: "(" %json {"type": "array", "minItems": 2, "maxItems": 2, "items": {"const": 1},
                 "x-guidance": {"whitespace_pattern": "[ ]{100}"}} ")" # nor %json "here
)x"});
  size_t longest = 0;
  for (uint32_t seed = 0; seed < 20; ++seed) {
    const std::string text = write(matcher, seed);
    EXPECT_THAT(text, StartsWith("%json {%json /(")) << text;
    longest = std::max(longest, longest_white_space(text));
  }
  EXPECT_LE(longest, 8u);
  EXPECT_GE(longest, 2u);
  EXPECT_THAT(refusal(GrammarOutput{"start: %json ("}), HasSubstr("expected a JSON schema"));
  EXPECT_THAT(refusal(GrammarOutput{"start: %json false"}), HasSubstr("no text fits it"));
}

TEST_F(Grammar, TaggedPartsFitTheirSchemas) {
  const GrammarMatcher matcher = factory_.compile(StructuralTagOutput{R"x({"type": "structural_tag",
      "structures": [{"begin": "(a", "schema": {"enum": [11, 17]}, "end": ")"},
                     {"begin": "(", "schema": {"const": 1}, "end": "!"}],
      "triggers": ["("]})x"});
  // Whether the matcher takes the text, character by character, and then may end or may not.
  const auto takes = [&](std::string_view text, bool ends) {
    GrammarMatcher copy = matcher;
    for (const char c : text) {
      if (!copy.accept(*tokenizer_.token_id(std::string(1, c)))) return false;
    }
    return copy.may_end() == ends;
  };
  EXPECT_TRUE(takes("", true));
  EXPECT_TRUE(takes("1aa!)", true));
  EXPECT_TRUE(takes("a(", false));
  EXPECT_TRUE(takes("a(a17", false));
  EXPECT_TRUE(takes("a(a17)1(1!(a11)a", true));
  EXPECT_FALSE(takes("a(b", false));
  EXPECT_FALSE(takes("a(a12", false));
  EXPECT_FALSE(takes("(a11)(2", false));
  EXPECT_THAT(refusal(StructuralTagOutput{"{"}), StartsWith("structural tag: not JSON"));
  EXPECT_THAT(refusal(StructuralTagOutput{R"({"structures": []})"}), HasSubstr("triggers: expected 1 to 256"));
  EXPECT_THAT(refusal(StructuralTagOutput{R"({"triggers": ["<"], "structures": []})"}), HasSubstr("structures"));
  EXPECT_THAT(refusal(StructuralTagOutput{R"({"triggers": ["<"], "structures": [{"begin": "a", "end": "b"}]})"}),
              HasSubstr("structures[0].begin: does not begin with one of the triggers"));
  EXPECT_THAT(refusal(StructuralTagOutput{R"({"format": {}})"}), HasSubstr("only structures and triggers"));
}

TEST_F(Grammar, SpecsThatCannotBeAreRefusedWithWords) {
  EXPECT_THAT(refusal(JsonSchemaOutput{"{"}), StartsWith("JSON schema: not JSON: EOF"));
  EXPECT_EQ(refusal(JsonSchemaOutput{"false"}), "JSON schema: false: no text fits it");
  EXPECT_EQ(refusal(JsonSchemaOutput{"[1]"}), "JSON schema: neither an object nor true");
  EXPECT_THAT(refusal(JsonSchemaOutput{R"({"type": "strange"})"}), HasSubstr("strange"));
  EXPECT_THAT(refusal(JsonSchemaOutput{R"({"not": {"type": "string"}})"}), HasSubstr("not"));
  EXPECT_THAT(refusal(JsonSchemaOutput{R"({"$ref": "#/$defs/none"})"}), HasSubstr("none"));
  EXPECT_THAT(refusal(JsonSchemaOutput{R"({"$ref": "http://example.com/schema"})"}), HasSubstr("example.com"));
  EXPECT_THAT(refusal(JsonSchemaOutput{R"x({"type": "string", "pattern": "a(?=b)"})x"}), HasSubstr("look-around"));
  EXPECT_THAT(refusal(JsonSchemaOutput{R"({"type": "integer", "minimum": 3, "maximum": 2})"}), HasSubstr("minimum"));
  EXPECT_THAT(refusal(RegexOutput{"(a"}), StartsWith("regex: "));
  EXPECT_THAT(refusal(RegexOutput{"a(?!b)"}), HasSubstr("look-around"));
  EXPECT_THAT(refusal(GrammarOutput{"start: missing"}), HasSubstr("missing"));
  EXPECT_THAT(refusal(GrammarOutput{""}), StartsWith("grammar: "));
  EXPECT_THAT(refusal(GrammarOutput{"%llguidance {\"allow_invalid_utf8\": true}\nstart: /a/"}), HasSubstr("UTF-8"));
  EXPECT_EQ(refusal(ChoiceOutput{}), "choice: expected at least one text, none of them empty");
  EXPECT_EQ(refusal(ChoiceOutput{{"a", ""}}), "choice: expected at least one text, none of them empty");
  EXPECT_EQ(refusal(ChoiceOutput{{"\xff"}}), "grammar: not UTF-8");
}

TEST_F(Grammar, SizeAndNestingAreBounded) {
  const auto nested = [](size_t depth, const std::string& open, const std::string& close) {
    std::string text;
    for (size_t i = 0; i < depth; ++i) text += open;
    text += "a";
    for (size_t i = 0; i < depth; ++i) text += close;
    return text;
  };
  const auto chain = [](int rules) {
    std::string text = "start: r0\n";
    for (int i = 0; i < rules; ++i) text += cat("r", i, ": r", i + 1, "\n");
    return cat(text, "r", rules, ": \"a\"\n");
  };
  EXPECT_EQ(refusal(RegexOutput{std::string(20000, 'a')}), "regex: 20000 bytes, at most 16384 are accepted");
  EXPECT_EQ(refusal(GrammarOutput{chain(2000)}), "grammar: 23804 bytes, at most 16384 are accepted");
  EXPECT_EQ(refusal(JsonSchemaOutput{std::string(200000, ' ')}),
            "JSON schema: 200000 bytes, at most 131072 are accepted");
  EXPECT_EQ(refusal(RegexOutput{nested(60, "(", ")")}), "");
  EXPECT_EQ(refusal(RegexOutput{nested(65, "(", ")")}), "regex: groups nest deeper than 64");
  EXPECT_THAT(refusal(GrammarOutput{cat("start: ", nested(5000, "(", ")"))}), HasSubstr("too deeply nested"));
  EXPECT_THAT(refusal(JsonSchemaOutput{nested(5000, R"({"items":)", "}")}), HasSubstr("recursion limit"));
  EXPECT_EQ(refusal(JsonSchemaOutput{cat(R"({"type": "string", "pattern": ")", std::string(3000, 'a'), "\"}")}),
            "JSON schema: a pattern of 3000 bytes, at most 2048 are accepted");
  EXPECT_THAT(refusal(JsonSchemaOutput{cat(R"({"patternProperties": {")", nested(65, "(", ")"), R"(": true}})")}),
              HasSubstr("nest deeper"));
  // Rules and definitions that lead to each other, as many as the size allows: the compiler recurses on them.
  EXPECT_EQ(refusal(GrammarOutput{chain(1200)}), "");
  std::string references = R"({"$ref": "#/$defs/0", "$defs": {)";
  for (int i = 0; i < 4000; ++i) references += cat("\"", i, R"(":{"$ref":"#/$defs/)", i + 1, "\"},");
  static_cast<void>(refusal(JsonSchemaOutput{references + R"("4000": {"type": "null"}}})"}));
}

TEST_F(Grammar, AtTheEndOnlyEndTokensAreAllowed) {
  GrammarMatcher matcher = factory_.compile(RegexOutput{"a1?"});
  const TokenId a = *tokenizer_.token_id("a"), one = *tokenizer_.token_id("1"), a1 = *tokenizer_.token_id("a1");
  EXPECT_THAT(allowed(matcher), ::testing::UnorderedElementsAre(a, a1));
  EXPECT_FALSE(matcher.may_end());
  EXPECT_FALSE(matcher.accept(one));
  EXPECT_FALSE(matcher.accept(end_));
  EXPECT_FALSE(matcher.accept(-1));
  EXPECT_FALSE(matcher.accept(tokenizer_.vocab_size()));
  ASSERT_TRUE(matcher.accept(a));  // what was refused changed nothing
  EXPECT_TRUE(matcher.may_end());
  EXPECT_FALSE(matcher.is_finished());
  EXPECT_THAT(allowed(matcher), ::testing::UnorderedElementsAre(one, end_));
  ASSERT_TRUE(matcher.accept(one));
  EXPECT_TRUE(matcher.is_finished());
  EXPECT_THAT(allowed(matcher), ::testing::ElementsAre(end_));
  EXPECT_FALSE(matcher.accept(a));
  EXPECT_TRUE(matcher.failure().empty());
}

TEST_F(Grammar, CopiesGoTheirOwnWay) {
  GrammarMatcher first = factory_.compile(JsonSchemaOutput{kSchema});
  ASSERT_TRUE(first.accept(*tokenizer_.token_id("{")));
  GrammarMatcher second = first;
  for (uint32_t seed = 0; seed < 10; ++seed) EXPECT_EQ(write(first, seed), write(second, seed));
  const Mask before = mask_of(second);
  ASSERT_TRUE(first.accept(*tokenizer_.token_id("\"")));
  EXPECT_EQ(mask_of(second), before);
  EXPECT_NE(mask_of(first), before);
}

TEST_F(Grammar, SpecialTokensAreNoText) {
  GrammarMatcher matcher = factory_.compile(RegexOutput{"(?s:.*)"});
  const Mask mask = mask_of(matcher);
  for (TokenId token = 0; token < tokenizer_.vocab_size(); ++token) {
    if (!tokenizer_.is_special(token)) continue;
    EXPECT_EQ(has(mask, token), token == end_) << tokenizer_.token_text(token);
  }
  EXPECT_TRUE(has(mask, *tokenizer_.token_id("<tool>")));  // user defined: a piece of text
}

TEST_F(Grammar, VocabularyWithoutAnEnd) {
  const GrammarFactory factory(tokenizer_, {});
  GrammarMatcher matcher = factory.compile(ChoiceOutput{{"a"}});
  ASSERT_TRUE(matcher.accept(*tokenizer_.token_id("a")));
  EXPECT_TRUE(matcher.is_finished());
  EXPECT_TRUE(allowed(matcher).empty());
}

TEST_F(Grammar, TextThatNoTokenWritesFails) {
  GgufVocab letters = tiny_byte_level_vocab("gpt-2");
  letters.types[static_cast<size_t>('z')] = 3;  // a control token in place of the letter
  const Tokenizer without_z = Tokenizer::from_gguf("tiny", letters);
  ASSERT_TRUE(without_z.is_special('z'));
  const GrammarFactory factory(without_z, std::vector<TokenId>{*without_z.eos()});
  EXPECT_THROW(static_cast<void>(factory.compile(ChoiceOutput{{"z"}})), Error);
  GrammarMatcher matcher = factory.compile(ChoiceOutput{{"az"}});
  static_cast<void>(matcher.accept(*without_z.token_id("a")));
  Mask mask(static_cast<size_t>(without_z.vocab_size()) / 32 + 1, ~0u);
  matcher.compute_mask(mask);
  EXPECT_THAT(mask, ::testing::Each(0u));
  EXPECT_FALSE(matcher.failure().empty());
  EXPECT_FALSE(matcher.accept(*without_z.token_id("a")));
}

}  // namespace
}  // namespace headrace
