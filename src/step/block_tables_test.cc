#include "step/block_tables.h"

#include <gtest/gtest.h>

namespace headrace {
namespace {

PlanLimits limits() {
  return {.num_groups = 2,
          .group_blocks = {8, 4},
          .block_tokens = 16,
          .vocab_size = 100,
          .max_tokens = 64,
          .max_seq_len = 64};
}

StepPlan plan_of(int32_t first_pos, int32_t num_tokens) {
  StepPlan plan;
  plan.rows.push_back({SequenceId{7}, first_pos, num_tokens, 1});
  plan.tokens.assign(static_cast<size_t>(num_tokens), 5);
  return plan;
}

TEST(BlockTables, ChangesBuildOnTheStepBefore) {
  BlockTables tables(limits());
  StepPlan first = plan_of(0, 10);
  first.table_changes = {{SequenceId{7}, 0, 0, {BlockId{3}}}, {SequenceId{7}, 1, 0, {BlockId{1}}}};
  ASSERT_TRUE(tables.apply(first).ok());
  StepPlan second = plan_of(10, 10);
  second.table_changes = {{SequenceId{7}, 0, 1, {BlockId{0}}}, {SequenceId{7}, 1, 1, {BlockId{2}}}};
  ASSERT_TRUE(tables.apply(second).ok());
  ASSERT_EQ(tables.table(SequenceId{7}, 0).size(), 2u);
  EXPECT_EQ(tables.table(SequenceId{7}, 0)[1], BlockId{0});
  StepPlan last;
  last.retired = {SequenceId{7}};
  ASSERT_TRUE(tables.apply(last).ok());
  EXPECT_EQ(tables.num_sequences(), 0u);
}

TEST(BlockTables, AChangeWithoutItsBaseAsksForAResync) {
  BlockTables tables(limits());
  StepPlan plan = plan_of(16, 1);
  plan.table_changes = {{SequenceId{7}, 0, 1, {BlockId{3}}}};
  const auto result = tables.apply(plan);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code(), ErrorCode::kUnavailable);
  EXPECT_EQ(tables.num_sequences(), 0u);
}

TEST(BlockTables, AnEpochBeginsWithoutTables) {
  BlockTables tables(limits());
  StepPlan plan = plan_of(0, 10);
  plan.table_changes = {{SequenceId{7}, 0, 0, {BlockId{3}}}, {SequenceId{7}, 1, 0, {BlockId{1}}}};
  ASSERT_TRUE(tables.apply(plan).ok());
  StepPlan later = plan_of(10, 1);
  later.epoch = EpochId{1};
  const auto result = tables.apply(later);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code(), ErrorCode::kUnavailable);
  EXPECT_EQ(tables.num_sequences(), 0u);
  const auto earlier = tables.apply(plan);
  ASSERT_FALSE(earlier.ok());
  EXPECT_EQ(earlier.error().code(), ErrorCode::kCorrupt);
}

TEST(BlockTables, RefusesPlansThatMakeNoSense) {
  const auto refused = [](auto&& spoil) {
    StepPlan plan = plan_of(0, 10);
    plan.table_changes = {{SequenceId{7}, 0, 0, {BlockId{3}}}, {SequenceId{7}, 1, 0, {BlockId{1}}}};
    spoil(plan);
    BlockTables tables(limits());
    const bool ok = tables.apply(plan).ok();
    EXPECT_EQ(tables.num_sequences(), ok ? 1u : 0u);
    return !ok;
  };
  EXPECT_FALSE(refused([](StepPlan&) {}));
  EXPECT_TRUE(refused([](StepPlan& p) { p.tokens[0] = 100; }));
  EXPECT_TRUE(refused([](StepPlan& p) { p.tokens[0] = -1; }));
  EXPECT_TRUE(refused([](StepPlan& p) { p.tokens.pop_back(); }));
  EXPECT_TRUE(refused([](StepPlan& p) { p.rows[0].first_pos = 60; }));
  EXPECT_TRUE(refused([](StepPlan& p) { p.rows[0].first_pos = -1; }));
  EXPECT_TRUE(refused([](StepPlan& p) { p.rows[0].num_outputs = 11; }));
  EXPECT_TRUE(refused([](StepPlan& p) { p.table_changes[0].blocks[0] = BlockId{8}; }));
  EXPECT_TRUE(refused([](StepPlan& p) { p.table_changes[0].group = 2; }));
  EXPECT_TRUE(refused([](StepPlan& p) { p.table_changes[0].blocks.clear(); }));  // no room for the positions
  EXPECT_FALSE(refused([](StepPlan& p) { p.copies = {{1, BlockId{0}, BlockId{3}}}; }));
  EXPECT_TRUE(refused([](StepPlan& p) { p.copies = {{1, BlockId{0}, BlockId{4}}}; }));
  EXPECT_TRUE(refused([](StepPlan& p) { p.copies = {{1, BlockId{-1}, BlockId{3}}}; }));
  EXPECT_TRUE(refused([](StepPlan& p) { p.copies = {{2, BlockId{0}, BlockId{3}}}; }));
  EXPECT_TRUE(refused([](StepPlan& p) { p.copies = {{0, BlockId{3}, BlockId{3}}}; }));
}

TEST(BlockTables, ChangesOfAPlanBuildOnEachOtherAndOnRetiredNothing) {
  BlockTables tables(limits());
  StepPlan plan = plan_of(0, 40);
  plan.table_changes = {{SequenceId{7}, 0, 0, {BlockId{3}, BlockId{1}}},
                        {SequenceId{7}, 1, 0, {BlockId{0}, BlockId{1}, BlockId{2}}},
                        {SequenceId{7}, 0, 1, {BlockId{5}, BlockId{6}}}};
  ASSERT_TRUE(tables.apply(plan).ok());
  EXPECT_EQ(tables.table(SequenceId{7}, 0)[1], BlockId{5});
  StepPlan again = plan_of(40, 1);
  again.retired = {SequenceId{7}};
  EXPECT_EQ(tables.apply(again).error().code(), ErrorCode::kUnavailable) << "its tables are gone";
  again.table_changes = {{SequenceId{7}, 0, 1, {BlockId{3}}}};
  EXPECT_EQ(tables.apply(again).error().code(), ErrorCode::kUnavailable) << "so is the change's base";
  EXPECT_EQ(tables.table(SequenceId{7}, 0).size(), 3u);
}

}  // namespace
}  // namespace headrace
