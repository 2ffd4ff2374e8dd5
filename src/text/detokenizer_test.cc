#include "text/detokenizer.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "base/utf8.h"
#include "files/json_file.h"
#include "text/replace_invalid.h"
#include "text/tiny_vocab.h"

namespace headrace {
namespace {

TEST(ReplaceInvalid, FollowsTheUnicodeTables) {
  const std::string r = "\uFFFD";
  // Unicode 15.0, tables 3-8, 3-9, 3-10 and 3-11.
  EXPECT_EQ(replace_invalid_utf8("\xC0\xAF\xE0\x80\xBF\xF0\x81\x82\x41"), r + r + r + r + r + r + r + r + "A");
  EXPECT_EQ(replace_invalid_utf8("\xED\xA0\x80\xED\xBF\xBF\xED\xAF\x41"), r + r + r + r + r + r + r + r + "A");
  EXPECT_EQ(replace_invalid_utf8("\xF4\x91\x92\x93\xFF\x41\x80\xBF\x42"), r + r + r + r + r + "A" + r + r + "B");
  EXPECT_EQ(replace_invalid_utf8("\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41"), r + r + r + r + "A");
  EXPECT_EQ(replace_invalid_utf8("na\u00efve \U0001F4A7"), "na\u00efve \U0001F4A7");
  EXPECT_EQ(replace_invalid_utf8(""), "");
}

TEST(StreamDetokenizer, HoldsBackHalfACharacter) {
  const Tokenizer tokenizer = Tokenizer::from_gguf("tiny", tiny_byte_level_vocab("gpt-2"));
  StreamDetokenizer stream(tokenizer);
  EXPECT_EQ(stream.push('a'), "a");
  EXPECT_EQ(stream.push(0xF0), "");
  EXPECT_EQ(stream.push(0x9F), "");
  EXPECT_EQ(stream.push(0x92), "");
  StreamDetokenizer fork = stream;
  EXPECT_EQ(stream.push(0xA7), "\U0001F4A7");
  EXPECT_EQ(fork.push('b'), "\uFFFDb");
  EXPECT_EQ(stream.push(0xE6), "");
  EXPECT_EQ(stream.finish(), "\uFFFD");
  EXPECT_EQ(stream.finish(), "");
}

TEST(StreamDetokenizer, SkipsSpecialTokensOnRequest) {
  const Tokenizer tokenizer = Tokenizer::from_gguf("tiny", tiny_byte_level_vocab("gpt-2"));
  StreamDetokenizer skipping(tokenizer);
  StreamDetokenizer showing(tokenizer, {.skip_special = false});
  EXPECT_EQ(skipping.push(*tokenizer.eos()), "");
  EXPECT_EQ(showing.push(*tokenizer.eos()), "<|im_end|>");
}

TEST(StreamDetokenizer, DropsTheFirstSpaceOfANewTextOnly) {
  const Tokenizer tokenizer = Tokenizer::from_gguf("tiny", tiny_sentencepiece_vocab());
  const TokenId space_a = *tokenizer.token_id("\u2581a");
  StreamDetokenizer fresh(tokenizer);
  EXPECT_EQ(fresh.push(*tokenizer.bos()), "");
  EXPECT_EQ(fresh.push(space_a), "a");
  EXPECT_EQ(fresh.push(space_a), " a");
  EXPECT_EQ(fresh.finish(), "");
  EXPECT_EQ(fresh.push(space_a), "a");
  StreamDetokenizer going_on(tokenizer, {.continues_text = true});
  EXPECT_EQ(going_on.push(space_a), " a");
  EXPECT_EQ(going_on.push(space_a), " a");
}

void check_property(const Tokenizer& tokenizer) {
  EXPECT_TRUE(rc::check("pushes and finish are decode, and always whole characters", [&](bool skip_special) {
    const auto ids =
        *rc::gen::container<std::vector<TokenId>>(rc::gen::inRange<TokenId>(-1, tokenizer.vocab_size() + 1));
    StreamDetokenizer stream(tokenizer, {.skip_special = skip_special});
    std::string text;
    for (const TokenId id : ids) {
      const std::string part = stream.push(id);
      RC_ASSERT(is_utf8(part));
      text += part;
    }
    text += stream.finish();
    RC_ASSERT(text == tokenizer.decode(ids, skip_special));
    RC_ASSERT(is_utf8(text));
  }));
}

TEST(StreamDetokenizer, IsDecodeForAnySequence) {
  // 256 bytes are most of each vocabulary, so random sequences are rich in broken characters.
  GgufVocab bytes = tiny_byte_level_vocab("gpt-2");
  check_property(Tokenizer::from_gguf("tiny", bytes));
  check_property(Tokenizer::from_gguf("tiny", tiny_sentencepiece_vocab()));
  const std::string folder = std::string(HR_TEST_DATA) + "/models/_tokenizer/";
  check_property(Tokenizer::from_json(folder, read_text_file(folder + "tokenizer.json"), {}));
}

}  // namespace
}  // namespace headrace
