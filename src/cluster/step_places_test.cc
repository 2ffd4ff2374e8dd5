#include "cluster/step_places.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>

namespace headrace::cluster {
namespace {

double random_seconds() { return *rc::gen::inRange(0, 1000) * 1e-5; }

/// A machine whose clock differs from the head's by `offset` and runs a little faster or slower.
struct TestClock {
  double offset = 0, rate = 1;
  [[nodiscard]] double of(double head_seconds) const { return (head_seconds + offset) * rate; }
};

RC_GTEST_PROP(WorkerClock, IsWrongByAtMostHalfTheWayOfPlanAndReport, ()) {
  const TestClock there{.offset = *rc::gen::inRange(-100000, 100000) * 1e-3,
                        .rate = 1 + *rc::gen::inRange(-90, 90) * 1e-5};
  WorkerClock clock;
  double now = 5;
  double longest = 0;
  for (int i = 0; i < 50; ++i) {
    const double sent = now;
    const double plan = sent + random_seconds();
    const double report = plan + random_seconds();
    const double received = report + random_seconds();
    clock.observe(sent, there.of(plan), there.of(report), received);
    constexpr double kRounding = 1e-9;
    longest = std::max(longest, received - sent);
    // A bound holds for some moment of the step that gave it, within which the clocks drift apart, too.
    const double drifted = std::abs(there.rate - 1) * longest + kRounding;
    RC_ASSERT(clock.error() <= (received - sent - (report - plan)) / 2 + drifted);
    for (const double at : {plan, report}) {
      RC_ASSERT(std::abs(clock.on_head(there.of(at)) - at) <= clock.error() + drifted);
    }
    now = received + random_seconds();
  }
}

TEST(WorkerClock, AQuickExchangeIsRemembered) {
  WorkerClock clock;
  clock.observe(1, 101.001, 101.002, 1.003);
  clock.observe(1.01, 101.02, 101.02, 1.2);  // a slow one right after
  EXPECT_NEAR(clock.on_head(101.02), 1.02, 0.0015);
  EXPECT_LT(clock.error(), 0.0015);
}

TEST(WorkerClock, StartsAnewWhereAClockHasJumped) {
  WorkerClock clock;
  clock.observe(1, 101.001, 101.002, 1.003);
  clock.observe(2, 502.001, 502.002, 2.003);
  EXPECT_NEAR(clock.on_head(502), 2, 0.002);
}

/// Two workers that take steps one after the other, several in flight, over links with delays that vary.
RC_GTEST_PROP(StepPlaces, PlacesStagesAndLinksInOrderWithoutOverlap, ()) {
  const std::vector<TestClock> clocks = {{.offset = 70}, {.offset = -3}};
  StepPlaces places(clocks.size());
  std::vector<double> ends(clocks.size());  // of the workers' last steps
  std::vector<StepSlices> placed;
  double free = 5;
  double widest = 0;  // error of a clock so far
  for (int i = 0; i < 30; ++i) {
    const double begin = free;
    HeadMoments head{.plan_sent = begin, .first = {.compute = {begin, begin + random_seconds()}}};
    free = head.first.compute.end + random_seconds();
    head.rows_sent = free;
    std::vector<WorkerMoments> workers;
    std::vector<double> truth;
    double rows = head.rows_sent;
    for (size_t w = 0; w < clocks.size(); ++w) {
      const double plan = begin + random_seconds();
      rows += random_seconds();
      const double computing = std::max({plan, rows, ends[w]});
      const double took = random_seconds();
      const double sent = computing + took;
      ends[w] = sent;
      const double received = sent + random_seconds();
      widest = std::max(widest, (received - begin - (sent - plan)) / 2);
      workers.push_back({.report = {.seconds = {.compute = took},
                                    .moments = {.plan = clocks[w].of(plan),
                                                .rows = clocks[w].of(rows),
                                                .begin = clocks[w].of(computing),
                                                .sent = clocks[w].of(sent)}},
                         .received = received});
      truth.push_back(computing);
      rows = sent;
    }
    head.returned = rows + random_seconds();
    const StepSlices slices = places.place(head, workers);
    RC_ASSERT(slices.stages.size() == 3u && slices.links.size() == 3u && !slices.output);
    RC_ASSERT(slices.stages[0].compute == head.first.compute);
    RC_ASSERT(slices.links[2].end >= head.returned);
    for (size_t w = 0; w < clocks.size(); ++w) {
      const double placed_at = slices.stages[w + 1].compute.begin;
      RC_ASSERT(std::abs(placed_at - truth[w]) <= widest + 1e-9);
      RC_ASSERT(slices.stages[w + 1].compute.end >= placed_at);
    }
    placed.push_back(slices);
  }
  for (size_t i = 1; i < placed.size(); ++i) {
    for (size_t k = 0; k < 3; ++k) {
      RC_ASSERT(placed[i].links[k].begin >= placed[i - 1].links[k].end);
      RC_ASSERT(placed[i].stages[k].compute.begin >= placed[i - 1].stages[k].compute.end);
    }
  }
}

TEST(StepPlaces, IsExactWhereNothingIsOnItsWay) {
  StepPlaces places(1);
  const HeadMoments head{.plan_sent = 10,
                         .first = {.compute = {10, 11}, .serialise = 0.5},
                         .rows_sent = 11.5,
                         .returned = 14,
                         .output = StageSlice{.compute = {14, 15}}};
  const WorkerMoments worker{.report = {.seconds = {.compute = 2, .wait = 1.5, .serialise = 0.25},
                                        .moments = {.plan = 0, .rows = 1.5, .begin = 1.75, .sent = 4}},
                             .received = 14};
  const StepSlices slices = places.place(head, {worker});
  EXPECT_EQ(slices.stages[1].compute, (TimeSlice{11.75, 13.75}));
  EXPECT_EQ(slices.stages[1].wait, 1.5);
  EXPECT_EQ(slices.stages[1].serialise, 0.25);
  EXPECT_EQ(slices.links[0], (TimeSlice{11.5, 11.5}));
  EXPECT_EQ(slices.links[1], (TimeSlice{14, 14}));
  EXPECT_EQ(slices.output->compute, (TimeSlice{14, 15}));
}

}  // namespace
}  // namespace headrace::cluster
