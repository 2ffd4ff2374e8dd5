#include "base/trace_writer.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <sstream>

#include "base/error.h"

namespace headrace {
namespace {

TEST(TraceWriter, WritesTracksSpansAndCounters) {
  const std::string path = testing::TempDir() + "headrace_trace_writer_test.json";
  TraceWriter trace(path);
  const TraceWriter::Track stage = trace.add_track("stage \"0\"");
  trace.add_span(stage, "step 1", 0.001, 0.0035, "\"rows\":2");
  trace.add_counter("in flight", 0.001, 3);
  trace.close();
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  std::remove(path.c_str());
  EXPECT_EQ(text.str(),
            "[\n"
            R"({"ph":"M","pid":1,"tid":1,"name":"thread_name","args":{"name":"stage \"0\""}},)"
            "\n"
            R"({"ph":"M","pid":1,"tid":1,"name":"thread_sort_index","args":{"sort_index":1}},)"
            "\n"
            R"({"ph":"X","pid":1,"tid":1,"name":"step 1","ts":1000.000,"dur":2500.000,"args":{"rows":2}},)"
            "\n"
            R"({"ph":"C","pid":1,"name":"in flight","ts":1000.000,"args":{"value":3}})"
            "\n]\n");
}

TEST(TraceWriter, SaysWhereItCannotWrite) {
  try {
    TraceWriter trace(testing::TempDir() + "no such folder/trace.json");
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_NE(error.message().find("no such folder/trace.json: cannot be written"), std::string::npos);
  }
}

}  // namespace
}  // namespace headrace
