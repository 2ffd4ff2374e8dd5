#include "kv/prefix_tree.h"

#include <gtest/gtest.h>

namespace headrace {
namespace {

using Tokens = std::vector<TokenId>;

uint64_t all_the_same(std::span<const TokenId>, uint64_t) noexcept { return 7; }

class PrefixTreeTest : public testing::TestWithParam<TokenHash> {};
INSTANTIATE_TEST_SUITE_P(Hashes, PrefixTreeTest, testing::Values(hash_tokens, all_the_same),
                         [](const auto& test) { return test.index == 0 ? "Good" : "AllCollide"; });

TEST_P(PrefixTreeTest, FindsOnlyTheSameTokensAfterTheSamePrefixUnderTheSameSalt) {
  PrefixTree tree(2, 1, GetParam());
  const Tokens a{1, 2}, b{3, 4};
  EXPECT_EQ(tree.find(kNoNode, 0, a), kNoNode);
  const NodeId root = tree.insert(kNoNode, 0, a);
  const NodeId child = tree.insert(root, 0, b);
  const NodeId twin = tree.insert(kNoNode, 0, b);
  const NodeId salted = tree.insert(kNoNode, 1, a);
  EXPECT_EQ(tree.find(kNoNode, 0, a), root);
  EXPECT_EQ(tree.find(root, 0, b), child);
  EXPECT_EQ(tree.find(kNoNode, 0, b), twin);
  EXPECT_EQ(tree.find(kNoNode, 1, a), salted);
  EXPECT_EQ(tree.find(root, 0, a), kNoNode);
  EXPECT_EQ(tree.find(twin, 0, b), kNoNode);
  EXPECT_EQ(tree.find(salted, 1, b), kNoNode);
  EXPECT_EQ(tree.find(kNoNode, 2, a), kNoNode);
  EXPECT_EQ(tree.blocks(child)[0], kNoBlock);
  tree.clear();
  EXPECT_EQ(tree.size(), 0);
  EXPECT_EQ(tree.find(kNoNode, 0, a), kNoNode);
}

TEST_P(PrefixTreeTest, TheOldestUnusedNodeIsALeafAndItsNumberIsUsedAgain) {
  PrefixTree tree(1, 1, GetParam());
  const Tokens a{1}, b{2}, c{3};
  const NodeId root = tree.insert(kNoNode, 0, a);
  const NodeId left = tree.insert(root, 0, b);
  tree.enter(root);  // a second sequence
  const NodeId right = tree.insert(root, 0, c);
  tree.leave(left);
  tree.leave(root);
  EXPECT_EQ(tree.num_unused(), 1);
  tree.leave(right);
  tree.leave(root);
  EXPECT_EQ(tree.num_unused(), 3);
  EXPECT_EQ(tree.oldest_unused(), left);
  tree.enter(root);
  tree.enter(left);  // used again, so younger than the other
  tree.leave(left);
  tree.leave(root);
  EXPECT_EQ(tree.oldest_unused(), right);
  tree.remove(right);
  EXPECT_EQ(tree.find(root, 0, c), kNoNode);
  EXPECT_EQ(tree.oldest_unused(), left);
  tree.remove(left);
  EXPECT_EQ(tree.oldest_unused(), root);
  EXPECT_EQ(tree.size(), 1);
  tree.enter(root);
  tree.blocks(tree.insert(root, 0, c))[0] = BlockId{5};
  EXPECT_EQ(tree.size(), 2);
  EXPECT_EQ(tree.blocks(tree.find(root, 0, c))[0], BlockId{5});
}

TEST(PrefixTreeDeathTest, OnlyUnusedLeavesGo) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  PrefixTree tree(1, 1);
  const NodeId root = tree.insert(kNoNode, 0, Tokens{1});
  const NodeId leaf = tree.insert(root, 0, Tokens{2});
  EXPECT_DEATH(tree.remove(leaf), "1 users");
  tree.leave(leaf);
  tree.leave(root);
  EXPECT_DEATH(tree.remove(root), "1 children");
  EXPECT_DEATH((void)tree.insert(leaf, 0, Tokens{3}), "is not in use");
}

}  // namespace
}  // namespace headrace
