#include "client/answer_diff.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "client/record_maker.h"

namespace headrace::client {
namespace {

RequestRecord answer(int32_t index, std::string text) {
  RequestRecord record = completed_record(0, {1});
  record.index = index;
  record.text = std::move(text);
  return record;
}

TEST(AnswerDiff, EditDistanceIsLevenshteins) {
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3);
  EXPECT_EQ(edit_distance("", "abc"), 3);
  EXPECT_EQ(edit_distance("abc", ""), 3);
  EXPECT_EQ(edit_distance("same", "same"), 0);
  EXPECT_EQ(edit_distance("abcdef", "azced"), 3);
  EXPECT_EQ(edit_distance("aaaa", "aa"), 2);
}

TEST(AnswerDiff, RougeWPrefersWordsInARow) {
  EXPECT_DOUBLE_EQ(rouge_w("a b c d", "a b c d"), 1);
  EXPECT_EQ(rouge_w("a b", "c d"), 0);
  EXPECT_EQ(rouge_w("", ""), 1);
  EXPECT_EQ(rouge_w("a", ""), 0);
  // Two words in a row weigh 2^1.2, so their share of four is 2 / 4; apart they weigh 2, and 2^(1 / 1.2) / 4.
  EXPECT_DOUBLE_EQ(rouge_w("a b x y", "a b v w"), 0.5);
  EXPECT_DOUBLE_EQ(rouge_w("a x b y", "a v b w"), std::pow(2, 1 / 1.2) / 4);
  // Precision 2 / 4, recall 2 / 2: F = 2 * 0.5 / 1.5.
  EXPECT_DOUBLE_EQ(rouge_w("a b", "a b c d"), 2 * 0.5 / 1.5);
}

TEST(AnswerDiff, FindsTheFirstMismatch) {
  RequestRecord failed = answer(3, "x");
  failed.status = RequestStatus::kFailed;
  const std::vector<RequestRecord> a{answer(0, "one two three"), answer(1, "same"), answer(2, "lost"), failed};
  const std::vector<RequestRecord> b{answer(1, "same"), answer(0, "one two four"), answer(3, "x")};
  const AnswerDiff diff = compare_answers(a, b);
  EXPECT_EQ(diff.compared, 2);
  EXPECT_EQ(diff.only_in_one, 2);
  ASSERT_EQ(diff.differences.size(), 1u);
  EXPECT_EQ(diff.differences[0].index, 0);
  EXPECT_EQ(diff.differences[0].first_mismatch_byte, 8);
  EXPECT_EQ(diff.differences[0].first_mismatch_word, 2);
  // "three" to "four": no byte stays where it is, so four are replaced and one goes, of 13.
  EXPECT_DOUBLE_EQ(diff.differences[0].same_share, 1 - 5.0 / 13);
  EXPECT_DOUBLE_EQ(diff.mean_same_share, (1 + 1 - 5.0 / 13) / 2);
  EXPECT_THAT(diff_text(diff), testing::HasSubstr("2 answers compared, 1 the same, 1 differ, 2 in one run only"));
}

}  // namespace
}  // namespace headrace::client
