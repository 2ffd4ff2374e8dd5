#include "sched/step_timeline.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <sstream>

#include "base/error.h"

namespace headrace {
namespace {

using testing::TempDir;

/// A path that is free, and free again afterwards.
struct TestFile {
  explicit TestFile(const std::string& name) : path(TempDir() + "headrace_step_timeline_" + name + ".json") {}
  ~TestFile() { std::remove(path.c_str()); }
  [[nodiscard]] std::string text() const {
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
  }
  std::string path;
};

/// Step `id` of a pipeline of two stages, its output on the head; begins `at` seconds.
StepSlices pipeline_step(uint64_t id, double at) {
  return {.step = StepId{id},
          .rows = 2,
          .tokens = 9,
          .stages = {{.compute = {at, at + 0.25}, .serialise = 0.125}, {.compute = {at + 0.5, at + 1}, .wait = 0.25}},
          .output = StageSlice{.compute = {at + 1.5, at + 2}},
          .links = {{at + 0.25, at + 0.5}, {at + 1, at + 1.5}}};
}

/// Number of times that `part` occurs.
size_t count(const std::string& text, const std::string& part) {
  size_t number = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++number;
  return number;
}

/// A slice as the file has it; times in nanoseconds.
struct Span {
  int track = 0;
  std::string name, arguments;
  int64_t begin = 0, length = 0;
};
std::vector<Span> spans(const std::string& text) {
  std::vector<Span> spans;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(R"({"ph":"X")")) continue;
    const auto after = [&](const std::string& field) { return line.substr(line.find(field) + field.size()); };
    const std::string name = after(R"("name":")");
    const std::string arguments = after(R"("args":{)");
    spans.push_back({.track = std::stoi(after(R"("tid":)")),
                     .name = name.substr(0, name.find('"')),
                     .arguments = arguments.substr(0, arguments.find('}')),
                     .begin = std::llround(std::stod(after(R"("ts":)")) * 1000),
                     .length = std::llround(std::stod(after(R"("dur":)")) * 1000)});
  }
  return spans;
}

TEST(StepTimeline, WritesStagesOutputAndLinksOfAPipeline) {
  const TestFile file("pipeline");
  StepTimeline timeline(file.path);
  timeline.add(pipeline_step(7, steady_seconds()));
  timeline.close();
  const std::string text = file.text();
  for (const char* track : {"stage 0", "link 0 to 1", "stage 1", "link 1 to head"}) {
    EXPECT_EQ(count(text, std::string(R"("args":{"name":")") + track + R"("}})"), 1u) << track;
  }
  EXPECT_TRUE(text.ends_with("}\n]\n"));
  const std::string step = R"("rows":2,"tokens":9)";
  const std::vector<Span> expected = {
      {1, "step 7", step + R"(,"wait_seconds":0.000000,"serialise_seconds":0.125000)", 0, 250'000'000},
      {3, "step 7", step + R"(,"wait_seconds":0.250000,"serialise_seconds":0.000000)", 500'000'000, 500'000'000},
      {1, "step 7 output", step + R"(,"wait_seconds":0.000000,"serialise_seconds":0.000000)", 1'500'000'000,
       500'000'000},
      {2, "step 7", step, 250'000'000, 250'000'000},
      {4, "step 7", step, 1'000'000'000, 500'000'000}};
  const std::vector<Span> found = spans(text);
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(found[i].track, expected[i].track) << i;
    EXPECT_EQ(found[i].name, expected[i].name) << i;
    EXPECT_EQ(found[i].arguments, expected[i].arguments) << i;
    // Both ends are rounded to nanoseconds.
    EXPECT_NEAR(static_cast<double>(found[i].begin - found[0].begin), static_cast<double>(expected[i].begin), 1) << i;
    EXPECT_NEAR(static_cast<double>(found[i].length), static_cast<double>(expected[i].length), 1) << i;
  }
}

TEST(StepTimeline, AStepOfOneMachineIsOneSlice) {
  const TestFile file("local");
  StepTimeline timeline(file.path);
  const double now = steady_seconds();
  timeline.add({.step = StepId{1}, .rows = 1, .tokens = 1, .stages = {{.compute = {now, now + 1}}}});
  timeline.close();
  EXPECT_EQ(count(file.text(), "thread_name"), 1u);
  EXPECT_EQ(spans(file.text()).size(), 1u);
}

TEST(StepTimeline, StepsAreInTheFileBeforeItIsEnded) {
  const TestFile file("whole_steps");
  StepTimeline timeline(file.path);
  timeline.add(pipeline_step(1, steady_seconds()));
  timeline.add(pipeline_step(2, steady_seconds()));
  const std::string text = file.text();
  EXPECT_EQ(spans(text).size(), 10u);
  EXPECT_TRUE(text.ends_with("}}"));
}

TEST(StepTimeline, SlicesThatTouchStillTouchInNanoseconds) {
  const TestFile file("touch");
  StepTimeline timeline(file.path);
  double at = steady_seconds();
  for (uint64_t id = 1; id <= 200; ++id) {
    const double end = at + 1.0 / 3000;
    timeline.add({.step = StepId{id}, .rows = 1, .tokens = 1, .stages = {{.compute = {at, end}}}});
    at = end;
  }
  timeline.close();
  const std::vector<Span> found = spans(file.text());
  ASSERT_EQ(found.size(), 200u);
  for (size_t i = 1; i < found.size(); ++i) {
    EXPECT_EQ(found[i].begin, found[i - 1].begin + found[i - 1].length) << i;
  }
}

TEST(StepTimeline, EndsAtItsLimit) {
  const TestFile file("limit");
  StepTimeline timeline(file.path, 5000);
  for (uint64_t id = 1; id <= 100; ++id) timeline.add(pipeline_step(id, steady_seconds()));
  const std::string text = file.text();
  EXPECT_TRUE(text.ends_with("}\n]\n"));
  EXPECT_GE(text.size(), 5000u);
  EXPECT_LT(text.size(), 7000u);
  timeline.close();
  EXPECT_EQ(file.text(), text);
}

TEST(StepTimeline, SaysWhereItCannotWrite) {
  EXPECT_THROW(StepTimeline(TempDir() + "no such folder/steps.json"), Error);
  StepTimeline full("/dev/full");  // opens, but takes nothing
  full.add(pipeline_step(1, steady_seconds()));
  full.add(pipeline_step(2, steady_seconds()));
  full.close();
}

}  // namespace
}  // namespace headrace
