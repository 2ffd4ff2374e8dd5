#include "base/error.h"

#include <gtest/gtest.h>

namespace headrace {
namespace {

TEST(Printable, EscapesWhatMovesATerminal) {
  EXPECT_EQ(printable("a\nb\x1b[31m\x7f"), "a\\x0ab\\x1b[31m\\x7f");
  EXPECT_EQ(printable("caf\xc3\xa9\xc2\xa0\xf0\x9f\x92\xa7"), "caf\xc3\xa9\xc2\xa0\xf0\x9f\x92\xa7");
  EXPECT_EQ(printable("\xc2\x9b[31m\xc2\x80"), "\\xc2\\x9b[31m\\xc2\\x80") << "U+009B begins a sequence as ESC [ does";
  EXPECT_EQ(printable("\xff\xc2"), "\\xff\\xc2");
  EXPECT_EQ(printable(printable("\n\xff")), printable("\n\xff"));
  EXPECT_EQ(printable("abcdef", 3), "abc...");
}

}  // namespace
}  // namespace headrace
