#include "cluster/newcomer_place.h"

#include <gtest/gtest.h>

#include <vector>

namespace headrace::cluster {
namespace {

size_t chosen(const std::vector<std::string_view>& peers) { return place_for_newcomer(peers); }

TEST(NewcomerPlace, IsTheOldestOfTheAddressWithTheMost) {
  EXPECT_EQ(chosen({"a:1"}), 0u);
  EXPECT_EQ(chosen({"a:1", "b:1", "b:2"}), 1u);
  EXPECT_EQ(chosen({"b:1", "a:1", "c:9", "a:2"}), 1u);
  EXPECT_EQ(chosen({"[::1]:7", "[::2]:7", "[::2]:8"}), 1u);
}

TEST(NewcomerPlace, IsTheOldestOfAllWhereNobodyHasMore) {
  EXPECT_EQ(chosen({"z:1", "a:1", "b:1"}), 0u);
  EXPECT_EQ(chosen({"z:1", "a:1", "a:2", "z:2"}), 0u);
}

}  // namespace
}  // namespace headrace::cluster
