#include "base/ascii_text.h"

#include <gtest/gtest.h>

namespace headrace {
namespace {

TEST(AsciiText, LowerChangesLettersOnly) {
  EXPECT_EQ(ascii_lower("aZ@[`{ \xC3\x84"), "az@[`{ \xC3\x84");
  EXPECT_EQ(ascii_lower(""), "");
}

TEST(AsciiText, TrimmedAtBothEnds) {
  EXPECT_EQ(ascii_trimmed(" \t\r\na b\n "), "a b");
  EXPECT_EQ(ascii_trimmed(" \n"), "");
  EXPECT_EQ(ascii_trimmed(""), "");
}

TEST(AsciiText, HexIsTwoDigitsAByte) {
  const unsigned char bytes[] = {0x00, 0x0f, 0xa5, 0xff};
  EXPECT_EQ(hex_text(bytes), "000fa5ff");
}

}  // namespace
}  // namespace headrace
