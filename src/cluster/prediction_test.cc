#include "cluster/prediction.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "cluster/test_nodes.h"

namespace headrace::cluster {
namespace {

/// Layers whose rows cost much more than reading their weights.
ModelUnits model() {
  ModelUnits units;
  units.embedding_bytes = units.output_bytes = 1'000'000;
  for (int i = 0; i < 16; ++i) add_layer(units, 1'000'000, 100, 1e6);
  units.groups = {{.window = 0}};
  units.hidden = 1000;
  units.vocab_size = 1000;
  units.max_positions = 4096;
  return units;
}

DescribedNode described(const std::string& name) {
  return {.offer = {.name = name,
                    .memory_bytes = 1'000'000'000,
                    .costs = {.at = {unit_seconds(1, 1e-4, 1e-5), unit_seconds(101, 101e-4, 1e-4)},
                              .probe_bytes = layer_bytes(1'000'000)},
                    .link = {}},
          .memory_bytes_per_second = 0};
}

Prediction predict_on(size_t count, int32_t clients) {
  std::vector<DescribedNode> nodes;
  std::vector<NodeOffer> offers;
  for (size_t i = 0; i < count; ++i) {
    nodes.push_back(described(cat("n", i)));
    offers.push_back(nodes.back().offer);
  }
  const ModelUnits units = model();
  const PlacementOptions options{.rows = 48, .output_rows = 16};
  return predict(units, nodes, place(units, offers, options), options,
                 {.clients = clients, .prompt_tokens = 64, .output_tokens = 32});
}

TEST(Prediction, TwiceTheMachinesCarryTwiceTheClients) {
  const Prediction one = predict_on(1, 16);
  const Prediction two = predict_on(2, 32);
  // 16 layers of 0.1 ms a token, 3 tokens for each of an answer: 208 answers' tokens a second, less the output's time
  // and the first and last steps, which are not full.
  EXPECT_GT(one.load.output_rate, 0.9 * 208);
  EXPECT_LE(one.load.output_rate, 209);
  EXPECT_GT(two.load.output_rate, 1.8 * one.load.output_rate);
  EXPECT_LE(two.load.output_rate, 2 * 209);
  ASSERT_EQ(two.stage_busy.size(), 2u);
  for (const double busy : two.stage_busy) EXPECT_GT(busy, 0.9);
  EXPECT_EQ(one.link_busy.at(0), 0);
  EXPECT_GE(two.steps_in_flight, 1.8);
}

TEST(Prediction, LinksCarryTheResidualStream) {
  const ModelUnits units = model();
  const std::vector<NodeOffer> offers{described("a").offer, described("b").offer, described("c").offer};
  const PlacementOptions options{.layers = {8, 0, 8}, .output_on_head = true};
  const Placement placement = place(units, offers, options);
  EXPECT_EQ(link_token_bytes(units, placement, options, 0), 4000);
  EXPECT_EQ(link_token_bytes(units, placement, options, 1), 0);
  EXPECT_EQ(link_token_bytes(units, placement, options, 2), 4000);
  const std::vector<NodeOffer> alone{offers[0]};
  EXPECT_EQ(link_token_bytes(units, place(units, alone, {}), {}, 0), 0);
}

TEST(Prediction, SaysWhenARequestDoesNotFit) {
  std::vector<DescribedNode> nodes{described("a")};
  nodes[0].offer.memory_bytes = 21'000'000;  // 19.8 MB of weights, and 1.2 MB for 750 tokens
  const ModelUnits units = model();
  const std::vector<NodeOffer> offers{nodes[0].offer};
  const Placement placement = place(units, offers, {});
  try {
    (void)predict(units, nodes, placement, {}, {.clients = 1, .prompt_tokens = 1000, .output_tokens = 10});
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_NE(error.message().find("do not fit the KV cache"), std::string::npos) << error.message();
  }
}

}  // namespace
}  // namespace headrace::cluster
