#include "client/sse_parser.h"

#include <gtest/gtest.h>

#include "base/cat.h"

namespace headrace::client {
namespace {

using Events = std::vector<std::string>;

/// "type|data" of each event of `bytes`, fed in pieces of `piece` bytes.
Events events_of(std::string_view bytes, size_t piece) {
  Events events;
  SseParser parser([&](std::string_view type, std::string_view data) { events.push_back(cat(type, "|", data)); });
  for (size_t from = 0; from < bytes.size(); from += piece) EXPECT_TRUE(parser.feed(bytes.substr(from, piece)));
  parser.finish();
  return events;
}

TEST(SseParser, ReadsEventsHoweverTheyAreCut) {
  constexpr std::string_view kStream =
      "\xEF\xBB\xBF"
      ": a comment\n"
      "data: one\n\n"
      "event: error\r\ndata: two\r\ndata:  three\r\n\r\n"
      "id: 7\rdata:four\r\r"
      ":\n\n"
      "data\n\n"
      "unknown: x\ndata: {\"a\": \"b: c\"}\n\n";
  const Events expected{"|one", "error|two\n three", "|four", "|", "|{\"a\": \"b: c\"}"};
  for (size_t piece = 1; piece <= kStream.size(); ++piece) EXPECT_EQ(events_of(kStream, piece), expected) << piece;
}

TEST(SseParser, GivesOutAnEventThatIsNotEnded) {
  EXPECT_EQ(events_of("data: a\n\ndata: b", 3), (Events{"|a", "|b"}));
  EXPECT_EQ(events_of("data: a\n", 3), Events{"|a"});
  EXPECT_EQ(events_of("", 1), Events{});
}

TEST(SseParser, StopsAtEndlessEvents) {
  SseParser parser([](std::string_view, std::string_view) {});
  const std::string line = cat("data: ", std::string(1 << 20, 'x'), "\n");
  int lines = 0;
  while (lines < 100 && parser.feed(line)) ++lines;
  EXPECT_EQ(lines, 15) << "16 MiB, with what comes after the data's field";
}

}  // namespace
}  // namespace headrace::client
