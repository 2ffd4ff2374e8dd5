#include "text/tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>

#include "base/cat.h"
#include "base/error.h"
#include "base/utf8.h"
#include "files/json_file.h"
#include "text/tiny_vocab.h"

namespace headrace {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> pieces(const Tokenizer& tokenizer, std::string_view text, EncodeOptions options = {}) {
  std::vector<std::string> result;
  for (const TokenId id : tokenizer.encode(text, options)) result.emplace_back(tokenizer.token_text(id));
  return result;
}

/// The words that the pre-tokenizer `pre` cuts `text` into (at most four characters each, see tiny_vocab.h).
std::vector<std::string> words(const std::string& pre, std::string_view text) {
  const Tokenizer tokenizer = Tokenizer::from_gguf("tiny", tiny_byte_level_vocab(pre));
  std::vector<std::string> result;
  for (const TokenId id : tokenizer.encode(text)) result.emplace_back(tokenizer.token_bytes(id));
  return result;
}

template <class Body>
std::string error_of(Body body, ErrorCode code) {
  try {
    body();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.message();
    return error.message();
  }
  ADD_FAILURE() << "no error";
  return "";
}

std::string load_error(const GgufVocab& vocab, ErrorCode code = ErrorCode::kCorrupt) {
  return error_of([&] { (void)Tokenizer::from_gguf("v.gguf", vocab); }, code);
}

TEST(ByteLevel, CutsNumbers) {
  EXPECT_THAT(words("gpt-2", "1111"), ElementsAre("1111"));
  EXPECT_THAT(words("llama-bpe", "1111"), ElementsAre("111", "1"));
  EXPECT_THAT(words("gpt-4o", "1111"), ElementsAre("111", "1"));
  EXPECT_THAT(words("deepseek-v3", "1111"), ElementsAre("111", "1"));
  EXPECT_THAT(words("qwen2", "111"), ElementsAre("1", "1", "1"));
  EXPECT_THAT(words("tekken", "111"), ElementsAre("1", "1", "1"));
  EXPECT_THAT(words("smollm", " 11"), ElementsAre(" ", "1", "1"));
  EXPECT_THAT(words("falcon", "1111"), ElementsAre("111", "1"));
  EXPECT_THAT(words("superbpe", "a1111a1"), ElementsAre("a", "1", "111", "a", "1"));
  EXPECT_THAT(words("afmoe", "11111"), ElementsAre("11", "111"));
  EXPECT_THAT(words("tiny_aya", "1111 a"), ElementsAre("1", "111", " a"));
  EXPECT_THAT(words("tiny_aya", "1111a"), ElementsAre("111", "1", "a"));
}

TEST(ByteLevel, CutsWhiteSpace) {
  EXPECT_THAT(words("gpt-2", "a   a"), ElementsAre("a", "  ", " a"));
  EXPECT_THAT(words("gpt-2", "a   "), ElementsAre("a", "   "));
  EXPECT_THAT(words("gpt-2", " \n\na"), ElementsAre(" \n", "\n", "a"));
  EXPECT_THAT(words("llama-bpe", " \n\na"), ElementsAre(" \n\n", "a"));
  EXPECT_THAT(words("llama-bpe", "\n  a"), ElementsAre("\n", " ", " a"));
  EXPECT_THAT(words("spark2_5", " \na"), ElementsAre(" ", "\n", "a"));
  EXPECT_THAT(words("deepseek-coder", "a\n\n"), ElementsAre("a", "\n", "\n"));
  EXPECT_THAT(words("jais-2", "    a"), ElementsAre("  ", " ", " a"));
  EXPECT_THAT(words("jais-2", "a    "), ElementsAre("a", "    "));
  EXPECT_THAT(words("bloom", "a  a"), ElementsAre("a", " ", " a"));
}

TEST(ByteLevel, CutsPunctuation) {
  EXPECT_THAT(words("gpt-2", "a!! a"), ElementsAre("a", "!!", " a"));
  EXPECT_THAT(words("llama-bpe", "!a!\n"), ElementsAre("!a", "!\n"));
  EXPECT_THAT(words("gpt-2", "!a!\n"), ElementsAre("!", "a", "!", "\n"));
  EXPECT_THAT(words("laguna", "!\n"), ElementsAre("!", "\n"));
  EXPECT_THAT(words("seed-coder", "!\n"), ElementsAre("!", "\n"));
}

TEST(ByteLevel, EveryPreTokenizerKeepsTheText) {
  const std::vector<std::string> names = gguf_pre_tokenizers();
  EXPECT_GE(names.size(), 85u);
  const std::string text =
      "It's  \n\n 12345 naïve e\u0301 水渠。カタカナ 한국어 \U0001F469\u200D\U0001F33E \t\r\n<x> {\"a\": [1]} "
      "I'LL\u00a0  ";
  for (const std::string& name : names) {
    if (name == "gemma4" || name == "granite-embed-multi-311m" || name == "sarvam-moe" || name == "whitespace")
      continue;
    const Tokenizer tokenizer = Tokenizer::from_gguf(name, tiny_byte_level_vocab(name));
    EXPECT_EQ(tokenizer.decode(tokenizer.encode(text)), text) << name;
    EXPECT_EQ(tokenizer.pre_tokenizer(), name);
  }
}

TEST(ByteLevel, CharacterAlphabetsEscapeSpacesAndFallBackToBytes) {
  GgufVocab vocab = tiny_sentencepiece_vocab();
  vocab.model = "gpt2";
  vocab.pre = "gemma4";
  vocab.merges = {"a b", "\u2581 ab"};
  vocab.tokens.push_back("\n\n");
  vocab.types.push_back(1);
  vocab.scores.clear();
  vocab.bos = 1;
  const Tokenizer tokenizer = Tokenizer::from_gguf("tiny", vocab);
  EXPECT_THAT(pieces(tokenizer, "ab b\n\n\u00e9"), ElementsAre("ab", "\u2581", "b", "\n\n", "<0xC3>", "<0xA9>"));
  EXPECT_EQ(tokenizer.decode(tokenizer.encode("ab b\n\n\u00e9")), "ab b\n\n\u00e9");
  EXPECT_TRUE(tokenizer.add_bos());
}

TEST(ByteLevel, SpecialTokensComeFromTextOnlyWhenAsked) {
  const Tokenizer tokenizer = Tokenizer::from_gguf("tiny", tiny_byte_level_vocab("llama-bpe"));
  const std::string text = "a<|im_end|>1<tool>!";
  EXPECT_THAT(pieces(tokenizer, text, {.parse_special = true}), ElementsAre("a", "<|im_end|>", "1", "<tool>", "!"));
  const std::vector<TokenId> plain = tokenizer.encode(text);
  for (const TokenId id : plain) EXPECT_FALSE(tokenizer.is_special(id));
  EXPECT_THAT(plain, testing::Contains(*tokenizer.token_id("<tool>")));
  EXPECT_EQ(tokenizer.decode(plain), text);
  EXPECT_THAT(pieces(tokenizer, "a", {.add_special = true}), ElementsAre("<|bos|>", "a"));
  EXPECT_EQ(tokenizer.decode(tokenizer.encode(text, {.add_special = true, .parse_special = true})), "a1<tool>!");
}

TEST(ByteLevel, NeitherMergesNorWholeWordsMakeSpecialTokens) {
  // Llama 3 takes whole words that are tokens; here "aa" and "11" (by merges) are control tokens.
  GgufVocab vocab = tiny_byte_level_vocab("llama-bpe");
  for (size_t i = 0; i < vocab.tokens.size(); ++i) {
    if (vocab.tokens[i] == "aa" || vocab.tokens[i] == "11") vocab.types[i] = 3;
  }
  const Tokenizer tokenizer = Tokenizer::from_gguf("tiny", vocab);
  EXPECT_THAT(pieces(tokenizer, "aa"), ElementsAre("a", "a"));
  EXPECT_THAT(pieces(tokenizer, "11"), ElementsAre("1", "1"));
}

TEST(ByteLevel, AnswersAboutTokens) {
  const Tokenizer tokenizer = Tokenizer::from_gguf("tiny", tiny_byte_level_vocab("gpt-2"));
  const TokenId end = *tokenizer.token_id("<|im_end|>");
  EXPECT_EQ(tokenizer.eos(), end);
  EXPECT_THAT(tokenizer.end_ids(), ElementsAre(end));
  EXPECT_TRUE(tokenizer.is_special(end));
  EXPECT_TRUE(tokenizer.is_end(end));
  EXPECT_EQ(tokenizer.bos(), tokenizer.token_id("<|bos|>"));
  EXPECT_EQ(tokenizer.pad(), std::nullopt);
  EXPECT_FALSE(tokenizer.add_bos());
  EXPECT_EQ(tokenizer.kind(), "BPE");
  EXPECT_EQ(tokenizer.token_text(' '), "\u0120");
  EXPECT_EQ(tokenizer.token_bytes(' '), " ");
  EXPECT_EQ(tokenizer.token_bytes(0x80), "\x80");
  for (const TokenId id : {-1, tokenizer.vocab_size()}) {
    EXPECT_EQ(tokenizer.token_bytes(id), "");
    EXPECT_FALSE(tokenizer.is_special(id));
  }
  EXPECT_EQ(tokenizer.token_id("nothing"), std::nullopt);
}

TEST(ByteLevel, EndOfPartsIsNoEndInHarmony) {
  GgufVocab vocab = tiny_byte_level_vocab("gpt-4o");
  for (const char* name : {"<|end|>", "<|return|>", "<|call|>"}) {
    vocab.tokens.emplace_back(name);
    vocab.types.push_back(3);
  }
  const Tokenizer tokenizer = Tokenizer::from_gguf("tiny", vocab);
  EXPECT_FALSE(tokenizer.is_end(*tokenizer.token_id("<|end|>")));
  EXPECT_TRUE(tokenizer.is_end(*tokenizer.token_id("<|return|>")));
  EXPECT_TRUE(tokenizer.is_end(*tokenizer.token_id("<|call|>")));
}

TEST(Encode, TakesAnyBytes) {
  const Tokenizer tokenizer = Tokenizer::from_gguf("tiny", tiny_byte_level_vocab("llama-bpe"));
  EXPECT_EQ(tokenizer.encode("a\xff\xe6\xb0"), tokenizer.encode("a\uFFFD\uFFFD"));
  EXPECT_EQ(tokenizer.encode(std::string_view("\0a", 2)), (std::vector<TokenId>{0, 'a'}));
  EXPECT_TRUE(tokenizer.encode("").empty());
  EXPECT_EQ(tokenizer.encode(std::string_view{}), std::vector<TokenId>{});
}

// Quadratic merging or backtracking would take hours here.
TEST(Encode, LongWordsTakeLinearTime) {
  const Tokenizer spm = Tokenizer::from_gguf("tiny", tiny_sentencepiece_vocab());
  const std::string letters(1 << 18, 'a');
  EXPECT_EQ(spm.decode(spm.encode(letters)), letters);
  for (const char* pre : {"gpt-2", "llama-bpe", "gpt-4o", "tekken", "deepseek-llm", "superbpe", "tiny_aya", "jais-2"}) {
    const Tokenizer tokenizer = Tokenizer::from_gguf("tiny", tiny_byte_level_vocab(pre));
    for (const char c : std::string_view("a1 !\n")) {
      const std::string text = std::string(1 << 18, c) + "x";
      EXPECT_EQ(tokenizer.decode(tokenizer.encode(text)), text) << pre << " '" << c << "'";
    }
  }
}

TEST(Encode, ManyThreadsAtOnce) {
  const Tokenizer tokenizer = Tokenizer::from_gguf("tiny", tiny_byte_level_vocab("llama-bpe"));
  const std::string text = "a11 aa!\n  1";
  const std::vector<TokenId> want = tokenizer.encode(text);
  std::vector<std::future<bool>> runs;
  for (int thread = 0; thread < 4; ++thread) {
    runs.push_back(std::async(std::launch::async, [&] {
      for (int i = 0; i < 200; ++i) {
        if (tokenizer.encode(text) != want) return false;
      }
      return true;
    }));
  }
  for (std::future<bool>& run : runs) EXPECT_TRUE(run.get());
}

TEST(SentencePiece, MergesByScoreAndFromTheLeft) {
  const Tokenizer tokenizer = Tokenizer::from_gguf("tiny", tiny_sentencepiece_vocab());
  EXPECT_EQ(tokenizer.kind(), "SPM");
  // "ab" (-1) goes before "▁a" (-2); "▁a" and "ba" have equal scores, so the left one is joined first.
  EXPECT_THAT(pieces(tokenizer, "ab"), ElementsAre("\u2581", "ab"));
  EXPECT_THAT(pieces(tokenizer, "aba"), ElementsAre("\u2581", "ab", "a"));
  EXPECT_THAT(pieces(tokenizer, "a ba"), ElementsAre("\u2581a", "\u2581", "ba"));
  EXPECT_THAT(pieces(tokenizer, "\u00e9"), ElementsAre("\u2581", "<0xC3>", "<0xA9>"));
}

TEST(SentencePiece, SpaceRules) {
  GgufVocab vocab = tiny_sentencepiece_vocab();
  const Tokenizer with_prefix = Tokenizer::from_gguf("tiny", vocab);
  EXPECT_TRUE(with_prefix.strips_first_space());
  EXPECT_THAT(pieces(with_prefix, " a"), ElementsAre("\u2581", "\u2581a"));
  EXPECT_EQ(with_prefix.decode(with_prefix.encode(" a")), " a");
  // A text goes on after a token as at its beginning.
  EXPECT_THAT(pieces(with_prefix, "a<tool>a"), ElementsAre("\u2581a", "<tool>", "\u2581a"));
  EXPECT_THAT(pieces(with_prefix, "a", {.add_special = true}), ElementsAre("<s>", "\u2581a"));
  EXPECT_TRUE(with_prefix.encode("").empty());

  vocab.add_space_prefix = false;
  vocab.add_bos = false;
  const Tokenizer without = Tokenizer::from_gguf("tiny", vocab);
  EXPECT_FALSE(without.strips_first_space());
  EXPECT_THAT(pieces(without, "a", {.add_special = true}), ElementsAre("a"));
  EXPECT_EQ(without.decode(without.encode(" a")), " a");
}

TEST(SentencePiece, PlainTextMakesNoControlOrByteTokens) {
  const Tokenizer tokenizer = Tokenizer::from_gguf("tiny", tiny_sentencepiece_vocab());
  // "</" and "s>" are tokens, so merging alone would join them to the control token "</s>".
  EXPECT_THAT(pieces(tokenizer, "</s>"), ElementsAre("\u2581", "</", "s>"));
  EXPECT_THAT(pieces(tokenizer, "</s>", {.parse_special = true}), ElementsAre("</s>"));
  EXPECT_EQ(tokenizer.decode(tokenizer.encode("<0x41><s>")), "<0x41><s>");
}

TEST(SentencePiece, Phi3DropsWhiteSpaceAfterItsTokens) {
  GgufVocab vocab = tiny_sentencepiece_vocab();
  vocab.model_name = "Phi3 mini";
  const Tokenizer tokenizer = Tokenizer::from_gguf("tiny", vocab);
  EXPECT_THAT(pieces(tokenizer, "a</s>\n a<s> ", {.parse_special = true}),
              ElementsAre("\u2581a", "</s>", "\u2581a", "<s>", "\u2581", "\u2581"));
}

TEST(GgufVocab, RefusesWhatItCannotUse) {
  GgufVocab vocab = tiny_byte_level_vocab("no-such-pre");
  EXPECT_EQ(load_error(vocab, ErrorCode::kUnsupported),
            "v.gguf: tokenizer.ggml.pre: the pre-tokenizer \"no-such-pre\" is not known");
  for (const char* model : {"t5", "bert", "rwkv", "plamo2", ""}) {
    vocab.model = model;
    EXPECT_THAT(load_error(vocab, ErrorCode::kUnsupported), HasSubstr(cat("\"", model, "\" is not supported")));
  }
  vocab = tiny_byte_level_vocab("gpt-2");
  vocab.merges.clear();
  EXPECT_THAT(load_error(vocab), HasSubstr("tokenizer.ggml.merges"));
  for (const char* merge : {"ab", "", " ", "a ", "\xff a"}) {
    vocab.merges = {merge};
    EXPECT_THAT(load_error(vocab), HasSubstr("tokenizer.ggml.merges")) << merge;
  }
  vocab = tiny_byte_level_vocab("gpt-2");
  vocab.types.pop_back();
  EXPECT_THAT(load_error(vocab), HasSubstr("tokenizer.ggml.token_type: 1033 entries, expected 1034"));
  vocab = tiny_byte_level_vocab("gpt-2");
  vocab.eos = 1'000'000;
  EXPECT_THAT(load_error(vocab), HasSubstr("tokenizer.ggml.eos_token_id: 1000000"));
  vocab = tiny_byte_level_vocab("gpt-2");
  vocab.bos.reset();
  vocab.add_bos = true;
  EXPECT_THAT(load_error(vocab), HasSubstr("bos_token_id is absent"));
  vocab.tokens.clear();
  EXPECT_THAT(load_error(vocab), HasSubstr("the vocabulary is empty"));
}

TEST(GgufVocab, SurvivesOddTokens) {
  GgufVocab vocab = tiny_sentencepiece_vocab();
  vocab.tokens.insert(vocab.tokens.end(), {"", "a", "\xff\xfe", "<0x41>", "<0xZZ>"});
  vocab.types.insert(vocab.types.end(), {3, 1, 1, 6, 6});
  vocab.scores.insert(vocab.scores.end(), 5, std::numeric_limits<float>::quiet_NaN());
  const Tokenizer tokenizer = Tokenizer::from_gguf("tiny", vocab);
  EXPECT_EQ(tokenizer.decode(tokenizer.encode("a ab<0x41>")), "a ab<0x41>");
  for (TokenId id = 0; id < tokenizer.vocab_size(); ++id) {
    EXPECT_TRUE(is_utf8(tokenizer.decode(std::vector<TokenId>{id}, false)));
  }
}

Tokenizer fixture_tokenizer() {
  const std::string folder = std::string(HR_TEST_DATA) + "/models/_tokenizer/";
  return Tokenizer::from_json(folder, read_text_file(folder + "tokenizer.json"),
                              read_text_file(folder + "tokenizer_config.json"));
}

TEST(TokenizerJson, AnswersAboutTokens) {
  const Tokenizer tokenizer = fixture_tokenizer();
  EXPECT_EQ(tokenizer.vocab_size(), 512);
  EXPECT_EQ(tokenizer.kind(), "BPE");
  EXPECT_EQ(tokenizer.pre_tokenizer(), "ByteLevel");
  EXPECT_EQ(tokenizer.bos(), 0);
  EXPECT_EQ(tokenizer.eos(), 2);
  EXPECT_EQ(tokenizer.pad(), 3);
  EXPECT_THAT(tokenizer.end_ids(), ElementsAre(2));
  EXPECT_FALSE(tokenizer.add_bos());
  EXPECT_TRUE(tokenizer.is_special(1));
  EXPECT_FALSE(tokenizer.is_special(4));
  EXPECT_EQ(tokenizer.token_id("<|im_end|>"), 2);
}

TEST(TokenizerJson, SpecialTokensComeFromTextOnlyWhenAsked) {
  const Tokenizer tokenizer = fixture_tokenizer();
  const std::string text = "x<|im_end|>y<|im_start|>";
  EXPECT_THAT(tokenizer.encode(text, {.parse_special = true}), testing::IsSupersetOf({1, 2}));
  const std::vector<TokenId> plain = tokenizer.encode(text);
  for (const TokenId id : plain) EXPECT_FALSE(tokenizer.is_special(id));
  EXPECT_EQ(tokenizer.decode(plain), text);
  EXPECT_EQ(tokenizer.encode("\xff"), tokenizer.encode("\uFFFD"));
}

// A Unigram model scores "</s>" like any other piece, and its template puts "<s>" in front.
constexpr std::string_view kUnigram = R"({
  "added_tokens": [
    {"id": 0, "content": "<unk>", "special": true, "single_word": false, "lstrip": false, "rstrip": false, "normalized": false},
    {"id": 1, "content": "<s>", "special": true, "single_word": false, "lstrip": false, "rstrip": false, "normalized": false},
    {"id": 2, "content": "</s>", "special": true, "single_word": false, "lstrip": false, "rstrip": false, "normalized": false}],
  "pre_tokenizer": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": true},
  "post_processor": {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}},
    {"Sequence": {"id": "A", "type_id": 0}}], "pair": [{"Sequence": {"id": "A", "type_id": 0}}],
    "special_tokens": {"<s>": {"id": "<s>", "ids": [1], "tokens": ["<s>"]}}},
  "decoder": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": true},
  "model": {"type": "Unigram", "unk_id": 0, "vocab": [["<unk>", 0], ["<s>", 0], ["</s>", 0], ["▁", -2], ["a", -2],
    ["<", -5], ["/", -5], ["s", -5], [">", -5], ["▁a", -1]]}})";

TEST(TokenizerJson, PlainTextMakesNoSpecialTokensInUnigram) {
  const Tokenizer tokenizer = Tokenizer::from_json("u", kUnigram, R"({"bos_token": {"content": "<s>"}})");
  EXPECT_EQ(tokenizer.kind(), "Unigram");
  EXPECT_TRUE(tokenizer.add_bos());
  EXPECT_THAT(pieces(tokenizer, "a</s>"), ElementsAre("\u2581a", "<", "/", "s", ">"));
  EXPECT_THAT(pieces(tokenizer, "a</s>", {.add_special = true, .parse_special = true}),
              ElementsAre("<s>", "\u2581a", "</s>"));
  EXPECT_EQ(tokenizer.decode(tokenizer.encode("a a")), "a a");
}

TEST(TokenizerJson, TakesTokensThatOnlyTheConfigLists) {
  const Tokenizer tokenizer = Tokenizer::from_json(
      "u", kUnigram, R"({"added_tokens_decoder": {"10": {"content": "<|end_of_text|>", "special": true}}})");
  EXPECT_EQ(tokenizer.vocab_size(), 11);
  EXPECT_EQ(tokenizer.token_id("<|end_of_text|>"), 10);
  EXPECT_TRUE(tokenizer.is_end(10));
}

TEST(TokenizerJson, RefusesWhatItCannotUse) {
  const auto load = [](std::string_view json, std::string_view config, ErrorCode code) {
    return error_of([&] { (void)Tokenizer::from_json("dir", json, config); }, code);
  };
  EXPECT_THAT(load("{", "", ErrorCode::kCorrupt), HasSubstr("dir: tokenizer.json: "));
  EXPECT_THAT(load("", "", ErrorCode::kCorrupt), HasSubstr("dir: tokenizer.json: "));
  EXPECT_THAT(load(kUnigram, "[1", ErrorCode::kCorrupt), HasSubstr("dir: tokenizer_config.json: "));
  std::string ctc(kUnigram);
  ctc.replace(ctc.find("\"decoder\": {\"type\": \"Metaspace\", \"replacement\": \"▁\", \"prepend_scheme\": \"always\", "
                       "\"split\": true}"),
              std::string_view("\"decoder\": {\"type\": \"Metaspace\", \"replacement\": \"▁\", \"prepend_scheme\": "
                               "\"always\", \"split\": true}")
                  .size(),
              R"("decoder": {"type": "CTC", "pad_token": "<p>", "word_delimiter_token": "|", "cleanup": true})");
  EXPECT_THAT(load(ctc, "", ErrorCode::kUnsupported), HasSubstr("the decoder \"CTC\" is not supported"));
}

}  // namespace
}  // namespace headrace
