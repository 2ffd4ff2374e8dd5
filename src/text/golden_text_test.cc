#include "text/golden_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace headrace {
namespace {

namespace fs = std::filesystem;

const std::string kData = HR_TEST_DATA;

void expect_all_pass(const std::vector<GoldenText>& results, size_t num_files, int64_t num_cases) {
  EXPECT_EQ(results.size(), num_files);
  int64_t cases = 0;
  for (const GoldenText& result : results) {
    EXPECT_TRUE(result.passed()) << result.name << ": " << result.num_failures << " of " << result.num_cases
                                 << " failed, first: " << result.first_failure << result.not_tried;
    cases += result.num_cases;
  }
  EXPECT_EQ(cases, num_cases);
}

TEST(GoldenText, Vocabularies) { expect_all_pass(run_golden_tokenizers(kData + "/tokenizers"), 6, 6 * 46); }

TEST(GoldenText, VocabulariesThatMayNotBeCopied) {
  const char* fixtures = std::getenv("HEADRACE_FIXTURES");
  if (fixtures == nullptr) {
    GTEST_SKIP()
        << "the licence of the llama vocabularies forbids a copy: set HEADRACE_FIXTURES to the fixtures folder";
  }
  expect_all_pass(run_golden_tokenizers(std::string(fixtures) + "/tokenizers"), 8, 8 * 46);
}

TEST(GoldenText, Templates) { expect_all_pass(run_golden_templates(kData + "/templates"), 14, 152); }

TEST(GoldenText, TokenizerJson) {
  expect_all_pass(run_golden_tokenizer_json(kData + "/models/_tokenizer"), 3, 31 + 2 * 5 + 8);
}

class GoldenFolder : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(testing::TempDir()) / "headrace_golden_text";
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }
  void write(const std::string& name, const std::string& text) { std::ofstream(folder_ / name) << text; }
  [[nodiscard]] std::string path() const { return folder_.string(); }

  fs::path folder_;
};

TEST_F(GoldenFolder, SaysWhatIsMissing) {
  EXPECT_NE(run_golden_tokenizers(path()).at(0).not_tried, "");
  EXPECT_NE(run_golden_tokenizers(path() + "/none").at(0).not_tried, "");
  EXPECT_NE(run_golden_templates(path()).at(0).not_tried, "");
  EXPECT_NE(run_golden_tokenizer_json(path()).at(0).not_tried, "");
  write("a.gguf.inp", "x\n__ggml_vocab_test__\n");
  EXPECT_THAT(run_golden_tokenizers(path()).at(0).not_tried, testing::HasSubstr("a.gguf.out"));
  write("a.gguf.out", "1\n2\n");
  EXPECT_THAT(run_golden_tokenizers(path()).at(0).not_tried, testing::HasSubstr("1 texts but 2 lines"));
  write("a.gguf.out", "1\n");
  EXPECT_THAT(run_golden_tokenizers(path()).at(0).not_tried, testing::HasSubstr("a.gguf"));
  write("t.json", "{\"cases\": []}");
  EXPECT_THAT(run_golden_templates(path()).at(0).not_tried, testing::HasSubstr("t.jinja"));
  write("t.json", "not json");
  EXPECT_NE(run_golden_templates(path()).at(0).not_tried, "");
}

TEST_F(GoldenFolder, FailsOnWrongExpectations) {
  const std::string vocab = "ggml-vocab-gpt-2.gguf";
  fs::copy_file(kData + "/tokenizers/" + vocab, folder_ / vocab);
  write(vocab + ".inp", "Hello\n__ggml_vocab_test__\nHello\n__ggml_vocab_test__\n");
  write(vocab + ".out", "15496\n15497\n");
  const GoldenText tokens = run_golden_tokenizers(path()).at(0);
  EXPECT_EQ(tokens.num_cases, 2);
  EXPECT_EQ(tokens.num_failures, 1);
  EXPECT_FALSE(tokens.passed());
  EXPECT_EQ(tokens.first_failure, "\"Hello\": ids [15496], expected [15497]");

  write("t.jinja", "{{ messages[0].content }}{% if tools %}{{ raise_exception('no') }}{% endif %}");
  write("t.json", R"({"template": "t.jinja", "cases": [
    {"case": "right", "messages": [{"content": "a"}], "tools": null, "expected": {"text": "a"}},
    {"case": "wrong", "messages": [{"content": "a"}], "tools": null, "expected": {"text": "b"}},
    {"case": "no error", "messages": [{"content": "a"}], "tools": null, "expected": {"error": "TemplateError: no"}},
    {"case": "error", "messages": [{"content": "a"}], "tools": [1], "expected": {"text": "a"}},
    {"case": "other error", "messages": [{"content": "a"}], "tools": [1], "expected": {"error": "TemplateError: yes"}},
    {"case": "right error", "messages": [{"content": "a"}], "tools": [1], "expected": {"error": "TemplateError: no"}}]})");
  const GoldenText templates = run_golden_templates(path()).at(0);
  EXPECT_EQ(templates.num_cases, 6);
  EXPECT_EQ(templates.num_failures, 4);
  EXPECT_THAT(templates.first_failure, testing::HasSubstr("wrong: at byte 0"));
}

}  // namespace
}  // namespace headrace
