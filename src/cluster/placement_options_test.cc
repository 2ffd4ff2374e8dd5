#include "cluster/placement_options.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "cluster/test_nodes.h"

namespace headrace::cluster {
namespace {

TEST(PlacementOptions, AreOfTheWishesAndLimits) {
  const ModelUnits model = plain_model(4);
  const ServingLimits limits{.max_step_tokens = 256, .max_model_len = 100, .max_num_seqs = 7, .kv_cache_bytes = 12345};
  const PlacementOptions plain = placement_options({}, model, 3, limits, {});
  EXPECT_EQ(plain.max_step_tokens, 256);
  EXPECT_EQ(plain.max_model_len, 100);
  EXPECT_EQ(plain.max_num_seqs, 7);
  EXPECT_EQ(plain.kv_limit_bytes, 12345);
  EXPECT_EQ(plain.token_bytes, 400);
  EXPECT_FALSE(plain.prefer_kv);
  EXPECT_FALSE(plain.output_on_head);
  // As many clients for each node as before, whatever their number.
  EXPECT_EQ(plain.output_rows, 16);
  EXPECT_EQ(plain.rows, 48);
  const PlacementOptions asked =
      placement_options({.pipeline_layers = {1, 2, 1}, .output_stage = "last", .placement = "kv", .wire_dtype = "int8"},
                        model, 3, limits, {.clients = 60, .prompt_tokens = 4096, .output_tokens = 64});
  EXPECT_EQ(asked.layers, (std::vector<double>{1, 2, 1}));
  EXPECT_EQ(asked.output_on_head, false);
  EXPECT_TRUE(asked.prefer_kv);
  EXPECT_EQ(asked.token_bytes, 104);  // and a scale
  EXPECT_EQ(asked.output_rows, 20);
  EXPECT_EQ(asked.rows, 256);
  EXPECT_EQ(placement_options({.output_stage = "head"}, model, 3, limits, {}).output_on_head, true);
  EXPECT_THROW((void)placement_options({.wire_dtype = "f64"}, model, 3, limits, {}), Error);
}

TEST(PlacementOptions, WhoCutsByTheSameOptionsCutsAlike) {
  // An output that would make the head slowest goes to the last node, unless its logits cost more than that.
  ModelUnits model = plain_model(12);
  std::vector<NodeOffer> nodes{node("head", 3, 1000), node("a", 1, 1000), node("b", 1, 1000)};
  for (NodeOffer& offer : nodes) {
    offer.costs.at[0].output_seconds *= 6;
    offer.link.bytes_per_second = 1e9;
  }
  const auto output_on_head = [&] {
    return place(model, nodes, placement_options({}, model, nodes.size(), {}, {})).output_on_head();
  };
  EXPECT_FALSE(output_on_head());
  model.vocab_size = 1'000'000;  // 64 MB for 16 rows
  EXPECT_TRUE(output_on_head());
}

}  // namespace
}  // namespace headrace::cluster
