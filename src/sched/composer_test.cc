#include "sched/composer.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <numeric>

#include "step/block_tables.h"

namespace headrace {
namespace {

std::vector<TokenId> counted(int32_t n) {
  std::vector<TokenId> tokens(static_cast<size_t>(n));
  std::iota(tokens.begin(), tokens.end(), 0);
  return tokens;
}

TEST(Composer, CutsPromptsIntoChunksAndAsksForTheLastOutput) {
  Composer composer({.group_blocks = {8}, .max_step_tokens = 16, .max_chunk_tokens = 7});
  const SequenceId id = *composer.add(counted(10), 12, 9);
  StepPlan plan = *composer.compose();
  EXPECT_EQ(plan.rows[0], (PlanRow{id, 0, 7, 0}));
  plan = *composer.compose();
  EXPECT_EQ(plan.rows[0], (PlanRow{id, 7, 3, 1}));
  EXPECT_EQ(plan.tokens, (std::vector<TokenId>{7, 8, 9}));
  EXPECT_FALSE(composer.compose());
  composer.append(id, 42);
  EXPECT_EQ(composer.compose()->rows[0], (PlanRow{id, 10, 1, 1}));
}

TEST(Composer, RefusesWhatHasNoRoomAndGivesBlocksBack) {
  Composer composer({.group_blocks = {4, 2}});
  EXPECT_FALSE(composer.add(counted(4), 33, 0));
  EXPECT_EQ(composer.free_blocks(0), 4);
  const SequenceId id = *composer.add(counted(4), 32, 0);
  EXPECT_EQ(composer.free_blocks(1), 0);
  composer.finish(id);
  EXPECT_EQ(composer.free_blocks(0), 4);
  EXPECT_EQ(composer.free_blocks(1), 2);
}

/// Whatever arrives, every stage accepts every plan, and every token is computed exactly once and in order.
RC_GTEST_PROP(Composer, PlansAreAcceptedByAStage, ()) {
  const int32_t step_tokens = *rc::gen::inRange(1, 40);
  Composer composer(
      {.group_blocks = {12, 12}, .max_step_tokens = step_tokens, .max_chunk_tokens = *rc::gen::inRange(1, 20)});
  BlockTables tables({.num_groups = 2,
                      .group_blocks = {12, 12},
                      .block_tokens = 16,
                      .vocab_size = 1000,
                      .max_tokens = step_tokens,
                      .max_seq_len = 200});
  std::map<SequenceId, int32_t> computed;
  std::map<SequenceId, int32_t> length;
  for (const int action : *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 60))) {
    if (action > 40) {
      const int32_t n = action - 30;
      if (const auto id = composer.add(counted(n), n + 8, n - 1)) length[*id] = n;
    } else if (action > 35 && !length.empty()) {
      const SequenceId id = length.begin()->first;
      composer.finish(id);
      length.erase(id);
    } else if (const auto plan = composer.compose()) {
      const auto applied = tables.apply(*plan);
      RC_ASSERT(applied.ok());
      for (const PlanRow& row : plan->rows) {
        RC_ASSERT(row.first_pos == computed[row.sequence]);
        computed[row.sequence] += row.num_tokens;
      }
    }
  }
  while (const auto plan = composer.compose()) {
    RC_ASSERT(tables.apply(*plan).ok());
    for (const PlanRow& row : plan->rows) computed[row.sequence] += row.num_tokens;
  }
  for (const auto& [id, n] : length) RC_ASSERT(computed[id] == n);
}

}  // namespace
}  // namespace headrace
