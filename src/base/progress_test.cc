#include "base/progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace headrace {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

struct Screen {
  std::string text;
  std::chrono::steady_clock::time_point now{};

  ProgressOutput output(bool is_terminal, int32_t columns = 80) {
    return {.is_terminal = is_terminal, .columns = columns, .write = [this](std::string_view t) { text += t; }};
  }
  ProgressLine::Clock clock() {
    return [this] { return now; };
  }
};

TEST(ProgressLine, DrawsAndWipesOnATerminal) {
  Screen screen;
  {
    ProgressLine line("Loading x", 200e6, ProgressUnit::kBytes, screen.output(true), screen.clock());
    screen.now += std::chrono::seconds(2);
    line.update(50e6);
    EXPECT_THAT(screen.text, StartsWith("\rLoading x [######.................."));
    EXPECT_THAT(screen.text, HasSubstr(" 25 %  50.0 MB of 200.0 MB  25.0 MB/s"));
    const size_t length = screen.text.size();
    screen.now += std::chrono::milliseconds(50);
    line.update(60e6);
    EXPECT_EQ(screen.text.size(), length) << "redrawn too soon";
  }
  EXPECT_TRUE(screen.text.ends_with("\r\x1b[K"));
  EXPECT_EQ(screen.text.find('\n'), std::string::npos);
}

TEST(ProgressLine, NeverWraps) {
  Screen screen;
  ProgressLine line("A label that is longer than the terminal", 1, ProgressUnit::kShare, screen.output(true, 20),
                    screen.clock());
  line.update(0.5);
  EXPECT_EQ(screen.text, "\rA label that is lon\x1b[K");
}

TEST(ProgressLine, ElsewhereOnlyLongWorkSaysALine) {
  Screen screen;
  {
    ProgressLine line("Loading x", 1, ProgressUnit::kShare, screen.output(false), screen.clock());
    for (int i = 0; i < 29; ++i) {
      screen.now += std::chrono::seconds(1);
      line.update(i / 60.0);
    }
    EXPECT_EQ(screen.text, "");
    screen.now += std::chrono::seconds(1);
    line.update(0.5);
    line.update(0.5);
  }
  EXPECT_EQ(screen.text, "Loading x:  50 %\n");
}

}  // namespace
}  // namespace headrace
