#include "cluster/placement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "arch/registry.h"
#include "base/error.h"
#include "cluster/test_nodes.h"

namespace headrace::cluster {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(Placement, LoadsEachNodeToItsAbility) {
  // Head: 2 ms of output and a layers of 1 ms; the worker takes twice as long for each of the others.
  const Placement placement = place(plain_model(22), std::vector{node("head", 1, 1000), node("slow", 2, 1000)}, {});
  EXPECT_THAT(layers_of(placement), ElementsAre(14, 8));
  EXPECT_TRUE(placement.output_on_head());
  EXPECT_DOUBLE_EQ(placement.slowest_seconds, 16e-3);
  EXPECT_THAT(
      placement.stages,
      ElementsAre(PlacedStage{0, {.embedding = true, .first_sublayer = 0, .end_sublayer = 28, .output = false}},
                  PlacedStage{1, {.embedding = false, .first_sublayer = 28, .end_sublayer = 44, .output = false}},
                  PlacedStage{0, {.embedding = false, .first_sublayer = 44, .end_sublayer = 44, .output = true}}));
  EXPECT_THAT(placement.reason, HasSubstr("head: layers 0-13 and output, slow: layers 14-21; slowest"));
}

TEST(Placement, CutsInsideALayerWhereThatIsEvener) {
  // 3 layers of 1 ms and an output of 2: all but the last feed-forward against it and the output.
  const std::vector<NodeOffer> nodes{node("head", 1, 1000), node("a", 1, 1000)};
  const Placement placement = place(plain_model(3), nodes, {});
  EXPECT_THAT(layers_of(placement), ElementsAre(0.5, 2.5));
  EXPECT_DOUBLE_EQ(placement.slowest_seconds, 2.75e-3);
  EXPECT_THAT(placement.reason,
              HasSubstr("head: the attention of layer 0 and output, a: the feed-forward of layer 0 and layers 1-2;"));
}

TEST(Placement, OneNodeIsOneStage) {
  const Placement placement = place(plain_model(4), std::vector{node("head", 1, 1000)}, {});
  EXPECT_THAT(placement.stages,
              ElementsAre(PlacedStage{0, {.embedding = true, .first_sublayer = 0, .end_sublayer = 8, .output = true}}));
  EXPECT_EQ(placement.nodes[0].transfer_seconds, 0);
}

TEST(Placement, OutputGoesWhereItSlowsLeast) {
  // As long as twelve layers: alone on the last node, or on a head without layers.
  ModelUnits model = plain_model(12);
  std::vector<NodeOffer> nodes{node("head", 1, 1000), node("a", 1, 1000), node("b", 1, 1000)};
  for (NodeOffer& n : nodes) n.costs.at[0].output_seconds = 12e-3;
  const Placement on_head = place(model, nodes, {});
  EXPECT_TRUE(on_head.output_on_head());
  EXPECT_THAT(layers_of(on_head), ElementsAre(0, 6, 6));
  // A head that is slow at it leaves it to the last node, which then has no layers.
  nodes[0].costs.at[0].output_seconds = 20e-3;
  const Placement on_last = place(model, nodes, {});
  EXPECT_FALSE(on_last.output_on_head());
  // Beside its embedding, the head has a feed-forward less and so as much room for the cache.
  EXPECT_THAT(layers_of(on_last), ElementsAre(5.5, 6.5, 0));
  EXPECT_THAT(on_last.stages.back(),
              (PlacedStage{2, {.embedding = false, .first_sublayer = 24, .end_sublayer = 24, .output = true}}));
  EXPECT_TRUE(place(model, nodes, {.output_on_head = true}).output_on_head());
}

TEST(Placement, MemoryIsInProportion) {
  // Time would give each the same; memory of 1 : 2 : 4 does not.
  ModelUnits model = plain_model(28);
  model.embedding_bytes = model.output_bytes = 0;
  PlacementOptions options{.prefer_kv = true};
  const std::vector<NodeOffer> nodes{node("head", 1, 100), node("a", 1, 200), node("b", 1, 400)};
  const Placement placement = place(model, nodes, options);
  EXPECT_THAT(layers_of(placement), ElementsAre(4, 8, 16));
  for (size_t i = 0; i < 3; ++i) EXPECT_LE(placement.nodes[i].memory_bytes(), nodes[i].memory_bytes);
}

TEST(Placement, TradesThreePercentOfTimeForCache) {
  // 100 layers of each 1 ms: 50 and 50 is fastest, 51.25 and 48.75 within 3 %, and the head has more memory.
  ModelUnits model = plain_model(100);
  model.embedding_bytes = model.output_bytes = 0;
  std::vector<NodeOffer> nodes{node("head", 1, 1000), node("a", 1, 700)};
  for (NodeOffer& n : nodes) n.costs.at[0].output_seconds = 0;
  EXPECT_THAT(layers_of(place(model, nodes, {})), ElementsAre(51.5, 48.5));
  EXPECT_THAT(layers_of(place(model, nodes, {.prefer_kv = true})), ElementsAre(58.5, 41.5));
}

TEST(Placement, LinksBoundTheirSenders) {
  // 16 rows of 400 bytes over 640 kB/s: 10 ms, as long as ten layers.
  std::vector<NodeOffer> nodes{node("head", 1, 1000), node("a", 1, 1000)};
  nodes[0].link.bytes_per_second = nodes[1].link.bytes_per_second = 640e3;
  const Placement placement = place(plain_model(6), nodes, {});
  // All on the head takes 8 ms and sends nothing.
  EXPECT_THAT(layers_of(placement), ElementsAre(6, 0));
  EXPECT_DOUBLE_EQ(placement.slowest_seconds, 8e-3);
  const Placement cut = place(plain_model(6), nodes, {.layers = {3, 3}});
  EXPECT_DOUBLE_EQ(cut.slowest_seconds, 10e-3);
  EXPECT_THAT(cut.reason, HasSubstr("(its link)"));
}

TEST(Placement, LayersByHandAndTheOutputLastMeanTheLastNode) {
  // Whether that is fast or not, and for a head that holds all layers too.
  const std::vector<NodeOffer> nodes{node("head", 1, 1000), node("a", 1, 1000), node("b", 100, 1000)};
  for (const std::vector<double>& layers :
       {std::vector{5.0, 5.0, 0.0}, std::vector{10.0, 0.0, 0.0}, std::vector{0.0, 9.5, 0.5}}) {
    const Placement placement = place(plain_model(10), nodes, {.layers = layers, .output_on_head = false});
    EXPECT_THAT(layers_of(placement), testing::ElementsAreArray(layers));
    EXPECT_TRUE(placement.nodes[2].units.output);
  }
}

TEST(Placement, TakesLayersAsAskedFor) {
  const std::vector<NodeOffer> nodes{node("head", 1, 1000), node("a", 1, 1000), node("b", 1, 1000)};
  const Placement placement = place(plain_model(10), nodes, {.layers = {2, 0, 8}});
  EXPECT_THAT(layers_of(placement), ElementsAre(2, 0, 8));
  EXPECT_THAT(placement.stages[1].node, 2);
  EXPECT_THAT(placement.reason, HasSubstr("layers as asked for"));
  EXPECT_THAT(error_of_place(plain_model(10), nodes, {.layers = {5, 5}}).message(),
              HasSubstr("--pipeline-layers: 2 numbers for 3 nodes"));
  EXPECT_THAT(error_of_place(plain_model(10), nodes, {.layers = {5, 4, 2}}).message(),
              HasSubstr("they add up to 11 layers; the model has 10"));
  EXPECT_THAT(error_of_place(plain_model(10), nodes, {.layers = {5, 4.75, 0.25}}).message(),
              HasSubstr("4.75 layers; expected numbers from 0 to 10, whole or with .5"));
  EXPECT_THAT(error_of_place(plain_model(10), nodes, {.layers = {10, -1, 1}}).message(), HasSubstr("-1 layers"));
}

TEST(Placement, RefusesWithTheFiguresOfEveryNode) {
  const Error error =
      error_of_place(plain_model(30), {node("head", 1, 100), node("a", 1, 120)}, {.max_model_len = 2000});
  EXPECT_EQ(error.code(), ErrorCode::kOutOfMemory);
  EXPECT_THAT(error.message(), HasSubstr("its 30 layers are 300.0 MB"));
  // 100 MB - 22 of embedding: 13 MB a layer with 2 MB of cache; 22 more for the output.
  EXPECT_THAT(error.message(), HasSubstr("head: 100.0 MB hold 5.5 layers, with the output 4 layers; a: 120.0 MB hold 9 "
                                         "layers, with the output 7.5 layers"));
  EXPECT_EQ(error.message().find('\n'), std::string::npos);
}

TEST(Placement, SaysWhatTheLossOfANodeLeaves) {
  const std::vector<NodeOffer> nodes{node("head", 1, 200), node("big", 1, 400), node("small", 1, 100)};
  const std::vector<NodeLoss> all = losses(plain_model(24), nodes, {.max_model_len = 1000});
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].node, 1);
  EXPECT_FALSE(all[0].rest);  // 300 MB for 264 MB of layers, 44 of the rest, and cache
  ASSERT_TRUE(all[1].rest);
  EXPECT_GE(all[1].rest->kv_tokens, 1000);
  EXPECT_EQ(all[1].rest->nodes.size(), 2u);
}

TEST(Placement, CostsAreReadBetweenMeasuredRows) {
  const NodeCosts costs{.at = {unit_seconds(1, 1, 5), unit_seconds(9, 2, 5), unit_seconds(17, 4, 6)},
                        .probe_bytes = layer_bytes(100)};
  EXPECT_DOUBLE_EQ(costs.layer_seconds(layer_bytes(100), 1), 1);
  EXPECT_DOUBLE_EQ(costs.layer_seconds(layer_bytes(100), 5), 1.5);
  EXPECT_DOUBLE_EQ(costs.layer_seconds({.attention = 25}, 5), 1.5 / 4);
  EXPECT_DOUBLE_EQ(costs.layer_seconds({.feed_forward = 150}, 5), 1.5 * 3 / 2);
  EXPECT_DOUBLE_EQ(costs.layer_seconds(layer_bytes(100), 9), 2);
  EXPECT_DOUBLE_EQ(costs.layer_seconds(layer_bytes(300), 33), 24);
  EXPECT_DOUBLE_EQ(costs.output_seconds(13), 5.5);
  EXPECT_THAT(error_of_place(plain_model(2), {{.name = "x", .memory_bytes = 1, .costs = {}, .link = {}}}, {}).message(),
              HasSubstr("costs of node x: none"));
}

TEST(Placement, UnitsOfAModelAreItsTensors) {
  for (const std::string name : {"llama", "llama-tied-bf16"}) {
    const ModelFiles files = open_model(std::string(HR_TEST_DATA) + "/models/" + name);
    const ArchSpec spec = make_arch_spec(files);
    const ModelUnits units = model_units(spec, files, DType::kF16);
    EXPECT_EQ(units.num_layers(), spec.num_layers());
    EXPECT_EQ(units.shared_bytes, spec.tied_output ? units.embedding_bytes : 0);
    EXPECT_EQ(units.total_bytes(), files.tensor_bytes());
    int64_t token_bytes = 0;
    for (const SublayerUnit& sublayer : units.sublayers) token_bytes += sublayer.kv_bytes_per_token;
    EXPECT_EQ(token_bytes, kv_bytes_per_token(spec, spec.cache_groups[0], DType::kF16));
    EXPECT_GT(units.output_multiply_adds, 0);
  }
}

TEST(Placement, LargeClustersAreCutAtOnce) {
  ModelUnits model = plain_model(128);
  std::vector<NodeOffer> nodes;
  for (int i = 0; i < 16; ++i) nodes.push_back(node(cat("n", i), 1 + 0.25 * (i % 5), 400));
  const Placement placement = place(model, nodes, {.max_model_len = 4096});
  // All speeds together: 3 x (1 + 1/1.25 + 1/1.5 + 1/1.75 + 1/2) + 1 layers a ms, and 2 ms of output on the head.
  EXPECT_LT(placement.slowest_seconds, 130.0 / 11.615 * 1.12 * 1e-3);
  EXPECT_EQ(placement.nodes.size(), 16u);
}

}  // namespace
}  // namespace headrace::cluster
