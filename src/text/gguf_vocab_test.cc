#include "text/gguf_vocab.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace headrace {
namespace {

using testing::ElementsAre;

Metadata minimal() {
  Metadata metadata("m.gguf");
  metadata.add("tokenizer.ggml.model", MetaValue{std::string("llama")});
  metadata.add("tokenizer.ggml.tokens", MetaValue{std::vector<std::string>{"<unk>", "<s>", "</s>"}});
  return metadata;
}

std::string error_of(const Metadata& metadata) {
  try {
    (void)vocab_from_gguf(metadata);
  } catch (const LoadError& error) {
    return error.message();
  }
  return "";
}

TEST(VocabFromGguf, LeavesAbsentWhatIsAbsent) {
  const GgufVocab vocab = vocab_from_gguf(minimal());
  EXPECT_EQ(vocab.model, "llama");
  EXPECT_EQ(vocab.pre, "");
  EXPECT_THAT(vocab.tokens, ElementsAre("<unk>", "<s>", "</s>"));
  EXPECT_TRUE(vocab.scores.empty() && vocab.types.empty() && vocab.merges.empty());
  EXPECT_FALSE(vocab.bos || vocab.eos || vocab.eot || vocab.eom || vocab.unk || vocab.pad);
  EXPECT_FALSE(vocab.add_bos || vocab.add_eos || vocab.add_space_prefix);
}

TEST(VocabFromGguf, ReadsAllKeys) {
  Metadata metadata = minimal();
  metadata.add("general.name", MetaValue{std::string("Phi-3")});
  metadata.add("tokenizer.ggml.pre", MetaValue{std::string("default")});
  metadata.add("tokenizer.ggml.scores", MetaValue{std::vector<double>{0, -1, -2.5}});
  metadata.add("tokenizer.ggml.token_type", MetaValue{std::vector<int64_t>{2, 3, 6}});
  metadata.add("tokenizer.ggml.merges", MetaValue{std::vector<std::string>{"a b"}});
  metadata.add("tokenizer.ggml.bos_token_id", MetaValue{int64_t{1}});
  metadata.add("tokenizer.ggml.eos_token_id", MetaValue{int64_t{2}});
  metadata.add("tokenizer.ggml.unknown_token_id", MetaValue{int64_t{0}});
  metadata.add("tokenizer.ggml.padding_token_id", MetaValue{int64_t{0xffffffff}});
  metadata.add("tokenizer.ggml.eot_token_id", MetaValue{int64_t{-1}});
  metadata.add("tokenizer.ggml.add_bos_token", MetaValue{false});
  metadata.add("tokenizer.ggml.add_eos_token", MetaValue{true});
  metadata.add("tokenizer.ggml.add_space_prefix", MetaValue{false});
  const GgufVocab vocab = vocab_from_gguf(metadata);
  EXPECT_EQ(vocab.model_name, "Phi-3");
  EXPECT_EQ(vocab.pre, "default");
  EXPECT_THAT(vocab.scores, ElementsAre(0.0f, -1.0f, -2.5f));
  EXPECT_THAT(vocab.types, ElementsAre(2, 3, 6));
  EXPECT_THAT(vocab.merges, ElementsAre("a b"));
  EXPECT_EQ(vocab.bos, 1);
  EXPECT_EQ(vocab.eos, 2);
  EXPECT_EQ(vocab.unk, 0);
  EXPECT_EQ(vocab.pad, std::nullopt);
  EXPECT_EQ(vocab.eot, std::nullopt);
  EXPECT_EQ(vocab.add_bos, false);
  EXPECT_EQ(vocab.add_eos, true);
  EXPECT_EQ(vocab.add_space_prefix, false);
}

TEST(VocabFromGguf, NamesTheKeyThatIsWrong) {
  EXPECT_THAT(error_of(Metadata("m.gguf")), testing::HasSubstr("tokenizer.ggml.model"));
  Metadata types = minimal();
  types.add("tokenizer.ggml.token_type", MetaValue{std::vector<int64_t>{1, 2, 7}});
  EXPECT_THAT(error_of(types), testing::HasSubstr("m.gguf: tokenizer.ggml.token_type: 7, expected 0 to 6"));
  Metadata merges = minimal();
  merges.add("tokenizer.ggml.merges", MetaValue{int64_t{3}});
  EXPECT_THAT(error_of(merges), testing::HasSubstr("tokenizer.ggml.merges"));
}

}  // namespace
}  // namespace headrace
