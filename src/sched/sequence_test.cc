#include "sched/sequence.h"

#include <gtest/gtest.h>

namespace headrace {
namespace {

Sequence sequence() { return Sequence(SequenceId{1}, 1, {.tokens = {5, 6, 7}, .max_len = 9}); }

TEST(Sequence, AsksForTheOutputOfItsLastTokenUnlessToldOtherwise) {
  EXPECT_EQ(sequence().next_output, 2);
  EXPECT_EQ(Sequence(SequenceId{1}, 1, {.tokens = {5, 6, 7}, .max_len = 9, .output_from = 0}).next_output, 0);
}

TEST(Sequence, LosesWhatWasComputedWithItsBlocks) {
  Sequence s = sequence();
  s.change_state(SequenceState::kRunning);
  s.computed = 3;
  s.next_output = 3;
  s.change_state(SequenceState::kPreempted);
  EXPECT_EQ(s.remaining(), 3);
  EXPECT_EQ(s.next_output, 3);
  EXPECT_TRUE(s.started);
}

TEST(SequenceDeathTest, RefusesOtherChangesOfState) {
  Sequence s = sequence();
  EXPECT_DEATH(s.change_state(SequenceState::kPreempted), "cannot go from state");
  s.change_state(SequenceState::kFinished);
  EXPECT_DEATH(s.change_state(SequenceState::kRunning), "cannot go from state");
}

TEST(Sequence, GoesByPriorityThenArrival) {
  const Sequence first(SequenceId{9}, 1, {.tokens = {1}, .max_len = 1, .priority = 1});
  const Sequence second(SequenceId{8}, 2, {.tokens = {1}, .max_len = 1, .priority = 1});
  const Sequence urgent(SequenceId{7}, 3, {.tokens = {1}, .max_len = 1, .priority = 0});
  EXPECT_TRUE(first.before(second));
  EXPECT_TRUE(urgent.before(first));
  EXPECT_FALSE(first.before(first));
}

}  // namespace
}  // namespace headrace
