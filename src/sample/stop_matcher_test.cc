#include "sample/stop_matcher.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>

namespace headrace {
namespace {

/// What the answer is cut to, the slow way: the first place where any stop text ends, and the longest that ends there.
std::string naive_cut(const std::string& text, const std::vector<std::string>& stops, bool& stopped) {
  for (size_t end = 1; end <= text.size(); ++end) {
    size_t found = 0;
    for (const std::string& stop : stops) {
      if (text.substr(0, end).ends_with(stop)) found = std::max(found, stop.size());
    }
    if (found > 0) {
      stopped = true;
      return text.substr(0, end - found);
    }
  }
  stopped = false;
  return text;
}

/// The longest end of `text` that begins a stop text and is not all of it.
size_t naive_hold(const std::string& text, const std::vector<std::string>& stops) {
  size_t hold = 0;
  for (const std::string& stop : stops) {
    for (size_t n = 1; n < stop.size() && n <= text.size(); ++n) {
      if (text.ends_with(stop.substr(0, n))) hold = std::max(hold, n);
    }
  }
  return hold;
}

TEST(StopMatcher, CutsAtTheStopAndHoldsBackOnlyItsBeginning) {
  const std::vector<std::string> stops{"END", "\n\n"};
  StopMatcher matcher(stops);
  EXPECT_EQ(matcher.push("abc"), "abc");
  EXPECT_EQ(matcher.push("x\n"), "x");
  EXPECT_EQ(matcher.push("yEN"), "\ny");
  EXPECT_EQ(matcher.push("E"), "EN");
  EXPECT_EQ(matcher.push("ND tail"), "");
  EXPECT_TRUE(matcher.stopped());
  EXPECT_EQ(matcher.push("more"), "");
  EXPECT_EQ(matcher.finish(), "");
}

TEST(StopMatcher, GivesOutWhatWasHeldBackAtTheEnd) {
  const std::vector<std::string> stops{"</s>"};
  StopMatcher matcher(stops);
  EXPECT_EQ(matcher.push("a</s"), "a");
  EXPECT_EQ(matcher.finish(), "</s");
  EXPECT_FALSE(matcher.stopped());
}

TEST(StopMatcher, MayIncludeTheStopAndTellsWhichItWas) {
  const std::vector<std::string> stops{"END", "\n\n", "AN END"};
  StopMatcher matcher(stops, true);
  EXPECT_EQ(matcher.push("an EN"), "an ");
  EXPECT_EQ(matcher.found(), std::nullopt);
  EXPECT_EQ(matcher.push("D tail"), "END");
  EXPECT_EQ(matcher.found(), 0u);
  StopMatcher longest(stops, true);
  EXPECT_EQ(longest.push("x AN END."), "x AN END");
  EXPECT_EQ(longest.found(), 2u);
}

TEST(StopMatcher, WhatIsPassedDoesNotCount) {
  const std::vector<std::string> stops{"END"};
  StopMatcher matcher(stops);
  EXPECT_EQ(matcher.pass("END, E"), "END, E");
  EXPECT_EQ(matcher.push("ND EN"), "ND ");
  EXPECT_EQ(matcher.pass("D"), "END");
  EXPECT_FALSE(matcher.stopped());
  EXPECT_EQ(matcher.push("END"), "");
  EXPECT_TRUE(matcher.stopped());
  EXPECT_EQ(matcher.pass("more"), "");
}

TEST(StopMatcher, WithoutStopsNothingIsHeldBack) {
  StopMatcher matcher({});
  EXPECT_EQ(matcher.push("any text"), "any text");
  EXPECT_EQ(matcher.finish(), "");
}

// Two letters, so that stop texts overlap themselves and each other.
TEST(StopMatcher, EqualsTheNaiveCutForAnyPieces) {
  EXPECT_TRUE(rc::check([] {
    const auto letters = rc::gen::element('a', 'b');
    const auto stops =
        *rc::gen::container<std::vector<std::string>>(rc::gen::nonEmpty(rc::gen::container<std::string>(letters)));
    const auto pieces = *rc::gen::container<std::vector<std::string>>(rc::gen::container<std::string>(letters));
    std::string text;
    std::string out;
    StopMatcher matcher(stops);
    for (const std::string& piece : pieces) {
      text += piece;
      out += matcher.push(piece);
      bool stopped = false;
      const std::string expected = naive_cut(text, stops, stopped);
      RC_ASSERT(stopped == matcher.stopped());
      RC_ASSERT(out == (stopped ? expected : text.substr(0, text.size() - naive_hold(text, stops))));
    }
    const bool stopped = matcher.stopped();
    out += matcher.finish();
    bool ignored = false;
    RC_ASSERT(out == naive_cut(text, stops, ignored));
    RC_CLASSIFY(stopped);
  }));
}

}  // namespace
}  // namespace headrace
