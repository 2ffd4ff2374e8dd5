#include "files/hub/hub_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/cat.h"
#include "files/gguf_split.h"
#include "files/test_folder.h"

namespace headrace {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

HubChoice choose(std::vector<std::string> files, const std::string& file = "") {
  std::sort(files.begin(), files.end());
  return choose_files(parse_hub_name(cat("hf:o/m", file.empty() ? "" : ":", file)), files);
}

std::string error(const std::vector<std::string>& files, const std::string& file = "") {
  return error_of([&] { (void)choose(files, file); });
}

TEST(HubChoice, OneFileOfWeights) {
  const HubChoice choice =
      choose({"config.json", "model.safetensors", "consolidated.safetensors", "tokenizer.json", "tokenizer_config.json",
              "README.md", "tokenizer/x.json", "model.gguf", "chat_template.jinja", "generation_config.json"});
  EXPECT_THAT(choice.files,
              UnorderedElementsAre("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json",
                                   "chat_template.jinja", "generation_config.json"));
  EXPECT_EQ(choice.index, "");
  EXPECT_EQ(choice.gguf, "");
  EXPECT_THAT(choose({"config.json", "weights.safetensors"}).files, ElementsAre("config.json", "weights.safetensors"));
  EXPECT_THAT(error({"config.json", "a.safetensors", "b.safetensors"}),
              HasSubstr("has several .safetensors (a.safetensors, b.safetensors) but no model.safetensors.index.json"));
}

TEST(HubChoice, AnIndexGoesFirst) {
  const HubChoice choice = choose({"config.json", "model.safetensors", "model.safetensors.index.json"});
  EXPECT_EQ(choice.index, "model.safetensors.index.json");
  EXPECT_THAT(choice.files, ElementsAre("config.json", "model.safetensors.index.json"));
}

TEST(HubChoice, Ggufs) {
  EXPECT_EQ(choose({"config.json", "a.gguf", "mmproj-a.gguf", "imatrix.gguf"}).gguf, "a.gguf");
  const HubChoice usual = choose({"m.Q4_K_M.gguf", "m.Q8_0.gguf", "m-IQ4_K_M_X.gguf"});
  EXPECT_EQ(usual.gguf, "m.Q4_K_M.gguf");
  EXPECT_TRUE(usual.is_default);
  EXPECT_FALSE(choose({"a.gguf"}).is_default);
  EXPECT_THAT(error({"a-Q4_K_M.gguf", "b-Q4_K_M.gguf"}), HasSubstr("one: a-Q4_K_M.gguf, b-Q4_K_M.gguf"));
  EXPECT_THAT(error({"README.md"}), HasSubstr("holds no .safetensors and no .gguf"));
  EXPECT_THAT(error({"m.safetensors"}), HasSubstr("no config.json"));
}

TEST(HubChoice, NamedFiles) {
  const std::vector<std::string> files = {"config.json",
                                          "model.safetensors",
                                          "m-Q4_K_M.gguf",
                                          "m-Q4_K_S.gguf",
                                          "x/m-BF16-00001-of-00002.gguf",
                                          "x/m-BF16-00002-of-00002.gguf"};
  EXPECT_EQ(choose(files, "m-Q4_K_S.gguf").gguf, "m-Q4_K_S.gguf");
  EXPECT_EQ(choose(files, "q4_k_s").gguf, "m-Q4_K_S.gguf");
  const HubChoice split = choose(files, "BF16");
  EXPECT_EQ(split.gguf, "x/m-BF16-00001-of-00002.gguf");
  EXPECT_THAT(split.files, ElementsAre("x/m-BF16-00001-of-00002.gguf", "x/m-BF16-00002-of-00002.gguf"));
  EXPECT_THAT(error(files, "Q4_K"), HasSubstr("has no file Q4_K"));
  EXPECT_THAT(error(files, "config.json"), HasSubstr("only a .gguf file can be named"));
  EXPECT_THAT(error(files, "x/m-BF16-00002-of-00002.gguf"), HasSubstr("is a later part of a split model"));
  EXPECT_THAT(error({"m-00001-of-00002.gguf"}), HasSubstr("the repository lacks its part m-00002-of-00002.gguf"));
}

TEST(GgufSplit, Names) {
  EXPECT_TRUE(is_later_split("m-00002-of-00003.gguf"));
  EXPECT_FALSE(is_later_split("m-00001-of-00003.gguf"));
  EXPECT_FALSE(is_later_split("m-0000x-of-00003.gguf"));
  EXPECT_FALSE(is_later_split(".gguf"));
  EXPECT_EQ(split_suffix(1, 3), "-00002-of-00003.gguf");
  EXPECT_THAT(split_files("m-00001-of-00002.gguf"), ElementsAre("m-00001-of-00002.gguf", "m-00002-of-00002.gguf"));
  for (const char* one : {"m.gguf", "m-00001-of-00000.gguf", "m-00002-of-00002.gguf"}) {
    EXPECT_THAT(split_files(one), ElementsAre(one));
  }
}

}  // namespace
}  // namespace headrace
