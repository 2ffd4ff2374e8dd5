#include "base/utf8.h"

#include <gtest/gtest.h>

namespace headrace {
namespace {

TEST(Utf8, KnowsWellFormedSequences) {
  EXPECT_EQ(utf8_sequence_length("a"), 1u);
  EXPECT_EQ(utf8_sequence_length("\xc3\xbc"), 2u);
  EXPECT_EQ(utf8_sequence_length("\xe5\x8c\x97"), 3u);
  EXPECT_EQ(utf8_sequence_length("\xf0\x9f\x98\x80"), 4u);
  EXPECT_EQ(utf8_sequence_length("\xc0\x80"), 0u);          // overlong
  EXPECT_EQ(utf8_sequence_length("\xed\xa0\x80"), 0u);      // surrogate
  EXPECT_EQ(utf8_sequence_length("\xf4\x90\x80\x80"), 0u);  // above U+10FFFF
  EXPECT_EQ(utf8_sequence_length("\x80"), 0u);
  EXPECT_EQ(utf8_sequence_length(""), 0u);
}

TEST(Utf8, FindsTheIncompleteTail) {
  EXPECT_EQ(utf8_incomplete_tail("abc"), 0u);
  EXPECT_EQ(utf8_incomplete_tail("a\xe5\x8c"), 2u);
  EXPECT_EQ(utf8_incomplete_tail("a\xf0\x9f\x98"), 3u);
  EXPECT_EQ(utf8_incomplete_tail("a\xf0\x9f\x98\x80"), 0u);
  EXPECT_EQ(utf8_incomplete_tail("a\xed\xa0"), 0u);  // can never become a character
  EXPECT_EQ(utf8_incomplete_tail("\xff"), 0u);
}

}  // namespace
}  // namespace headrace
