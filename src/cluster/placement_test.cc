#include "cluster/placement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "arch/registry.h"
#include "base/error.h"
#include "base/property_test.h"
#include "kv/cache_size.h"
#include "ops/kv_layout.h"

namespace headrace::cluster {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr int64_t kMb = 1'000'000;
constexpr double kImpossibleSeconds = std::numeric_limits<double>::infinity();

/// Layers all alike: 10 MB and 1000 bytes of cache a token; embedding and output of 20 MB.
ModelUnits plain_model(int32_t layers) {
  ModelUnits model;
  model.embedding_bytes = model.output_bytes = 20 * kMb;
  model.layers.assign(static_cast<size_t>(layers),
                      {.weight_bytes = 10 * kMb, .kv_bytes_per_token = 1000, .cache_group = 0, .multiply_adds = 1e7});
  model.groups = {{.window = 0}};
  model.hidden = 100;
  model.vocab_size = 1000;
  model.max_positions = 4096;
  model.token_workspace_bytes = 1000;
  return model;
}

/// A node that takes that many ms for a layer of the plain model and twice as long for the output.
NodeOffer node(const std::string& name, double layer_ms, int64_t memory_mb) {
  return {.name = name,
          .memory_bytes = memory_mb * kMb,
          .costs = {.at = {{.rows = 16, .layer_seconds = layer_ms * 1e-3, .output_seconds = 2e-3 * layer_ms}},
                    .probe_layer_bytes = 10 * kMb},
          .link = {}};
}

std::vector<int32_t> layers_of(const Placement& placement) {
  std::vector<int32_t> layers;
  for (const NodeShare& share : placement.nodes) layers.push_back(share.units.num_layers());
  return layers;
}

Error error_of_place(const ModelUnits& model, const std::vector<NodeOffer>& nodes, const PlacementOptions& options) {
  try {
    (void)place(model, nodes, options);
  } catch (const Error& error) {
    return error;
  }
  return Error(ErrorCode::kInternal, "no error");
}

TEST(Placement, LoadsEachNodeToItsAbility) {
  // Head: 2 ms of output and a layers of 1 ms; the worker takes twice as long for each of the others.
  const Placement placement = place(plain_model(22), std::vector{node("head", 1, 1000), node("slow", 2, 1000)}, {});
  EXPECT_THAT(layers_of(placement), ElementsAre(14, 8));
  EXPECT_TRUE(placement.output_on_head());
  EXPECT_DOUBLE_EQ(placement.slowest_seconds, 16e-3);
  EXPECT_THAT(placement.stages,
              ElementsAre(PlacedStage{0, {.embedding = true, .first_layer = 0, .end_layer = 14, .output = false}},
                          PlacedStage{1, {.embedding = false, .first_layer = 14, .end_layer = 22, .output = false}},
                          PlacedStage{0, {.embedding = false, .first_layer = 22, .end_layer = 22, .output = true}}));
  EXPECT_THAT(placement.reason, HasSubstr("head: layers 0-13 and output, slow: layers 14-21; slowest"));
}

TEST(Placement, OneNodeIsOneStage) {
  const Placement placement = place(plain_model(4), std::vector{node("head", 1, 1000)}, {});
  EXPECT_THAT(placement.stages,
              ElementsAre(PlacedStage{0, {.embedding = true, .first_layer = 0, .end_layer = 4, .output = true}}));
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
  EXPECT_THAT(layers_of(on_last), ElementsAre(6, 6, 0));
  EXPECT_THAT(on_last.stages.back(),
              (PlacedStage{2, {.embedding = false, .first_layer = 12, .end_layer = 12, .output = true}}));
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
  // 100 layers of each 1 ms: 50 and 50 is fastest, 51 and 49 within 3 %, and the head has more memory.
  ModelUnits model = plain_model(100);
  model.embedding_bytes = model.output_bytes = 0;
  std::vector<NodeOffer> nodes{node("head", 1, 1000), node("a", 1, 700)};
  for (NodeOffer& n : nodes) n.costs.at[0].output_seconds = 0;
  EXPECT_THAT(layers_of(place(model, nodes, {})), ElementsAre(51, 49));
  EXPECT_THAT(layers_of(place(model, nodes, {.prefer_kv = true})), ElementsAre(59, 41));
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
  for (const std::vector<int32_t>& layers : {std::vector{5, 5, 0}, std::vector{10, 0, 0}, std::vector{0, 10, 0}}) {
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
  EXPECT_THAT(error_of_place(plain_model(10), nodes, {.layers = {11, -1, 0}}).message(), HasSubstr("-1 layers"));
}

TEST(Placement, RefusesWithTheFiguresOfEveryNode) {
  const Error error =
      error_of_place(plain_model(30), {node("head", 1, 100), node("a", 1, 120)}, {.max_model_len = 2000});
  EXPECT_EQ(error.code(), ErrorCode::kOutOfMemory);
  EXPECT_THAT(error.message(), HasSubstr("its 30 layers are 300.0 MB"));
  // 100 MB - 22 of embedding: 13 MB a layer with 2 MB of cache; 22 more for the output.
  EXPECT_THAT(error.message(), HasSubstr("head: 100.0 MB hold 5 layers, with the output 4 layers; a: 120.0 MB hold 9 "
                                         "layers, with the output 7 layers"));
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
  const NodeCosts costs{.at = {{.rows = 1, .layer_seconds = 1, .output_seconds = 5},
                               {.rows = 9, .layer_seconds = 2, .output_seconds = 5},
                               {.rows = 17, .layer_seconds = 4, .output_seconds = 6}},
                        .probe_layer_bytes = 100};
  EXPECT_DOUBLE_EQ(costs.layer_seconds(100, 1), 1);
  EXPECT_DOUBLE_EQ(costs.layer_seconds(100, 5), 1.5);
  EXPECT_DOUBLE_EQ(costs.layer_seconds(100, 9), 2);
  EXPECT_DOUBLE_EQ(costs.layer_seconds(300, 33), 24);
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
    const int64_t shared = spec.tied_output ? units.embedding_bytes : 0;
    EXPECT_EQ(units.total_bytes() - shared, files.tensor_bytes());
    int64_t token_bytes = 0;
    for (const LayerUnit& layer : units.layers) token_bytes += layer.kv_bytes_per_token;
    EXPECT_EQ(token_bytes, kv_bytes_per_token(spec, spec.cache_groups[0], DType::kF16));
    EXPECT_GT(units.output_multiply_adds, 0);
  }
}

/// What a cut comes to, by the words of placement.h and without the tables of the search.
struct Judged {
  double seconds = 0;
  int64_t blocks = 0;
};
struct Case {
  ModelUnits model;
  std::vector<NodeOffer> nodes;
  PlacementOptions options;
};

Judged judge(const Case& c, const std::vector<int32_t>& layers, size_t output_node) {
  const int32_t longest = std::max(c.options.max_model_len, kBlockTokens);
  std::vector<double> share;
  std::vector<int64_t> one;
  double most = 0;
  for (const UnitCacheGroup& group : c.model.groups) {
    one.push_back(most_blocks_held(group.window, kBlockTokens, longest, c.options.max_step_tokens));
    share.push_back(most_blocks_held(group.window, kBlockTokens, std::min(longest, 2048), 1));
    most = std::max(most, share.back());
  }
  Judged judged{.seconds = 0, .blocks = int64_t{1} << 26};
  size_t layer = 0;
  for (size_t n = 0; n < c.nodes.size(); ++n) {
    const bool output = n == output_node, head = n == 0;
    if (!head && layers[n] == 0 && !output) continue;
    const NodeOffer& offer = c.nodes[n];
    int64_t file_bytes = (head ? c.model.embedding_bytes : 0) + (output ? c.model.output_bytes : 0);
    int64_t layer_bytes = 0;
    std::vector<int64_t> token_bytes(c.model.groups.size());
    for (int32_t i = 0; i < layers[n]; ++i, ++layer) {
      layer_bytes += c.model.layers[layer].weight_bytes;
      token_bytes[static_cast<size_t>(c.model.layers[layer].cache_group)] += c.model.layers[layer].kv_bytes_per_token;
    }
    file_bytes += layer_bytes;
    const int32_t output_rows = c.options.output_rows > 0 ? c.options.output_rows : c.options.rows;
    const bool all = layers[0] == c.model.num_layers() && output && head;
    const double compute = offer.costs.fixed_seconds + offer.costs.layer_seconds(layer_bytes, c.options.rows) +
                           (output ? offer.costs.output_seconds(output_rows) : 0);
    const bool sends = !all && (head || !output);
    const bool returns_logits = output && !head;
    const double transfer = returns_logits ? output_rows * 4.0 * c.model.vocab_size / offer.link.bytes_per_second
                            : sends ? (layer == c.model.layers.size() ? output_rows : c.options.rows) * c.model.hidden *
                                          4 / offer.link.bytes_per_second
                                    : 0;
    judged.seconds = std::max({judged.seconds, compute, transfer});
    const int64_t stages = head && output && layers[0] < c.model.num_layers() ? 2 : 1;
    int64_t room = offer.memory_bytes - file_bytes - file_bytes / 10 -
                   stages * c.options.max_step_tokens * c.model.token_workspace_bytes -
                   (output ? std::min(64, c.options.max_step_tokens) * c.model.vocab_size * 4 : 0);
    if (room < 0) return {kImpossibleSeconds, -1};
    if (layers[n] == 0) continue;
    const auto bytes_of = [&](int64_t blocks) {
      int64_t bytes = 0;
      for (size_t g = 0; g < one.size(); ++g) {
        bytes += token_bytes[g] * kBlockTokens *
                 std::max(one[g], static_cast<int64_t>(std::ceil(share[g] / most * static_cast<double>(blocks))));
      }
      return bytes;
    };
    int64_t blocks = 0;
    for (size_t g = 0; g < one.size(); ++g) {
      if (share[g] == most) blocks = std::max(blocks, one[g]);
    }
    if (bytes_of(blocks) > room) return {kImpossibleSeconds, -1};
    while (bytes_of(blocks + 1) <= room) ++blocks;
    judged.blocks = std::min(judged.blocks, blocks);
  }
  return judged;
}

/// Every cut: layers of each node, and the output on the head or on the last node that holds anything.
template <class Visit>
void for_each_cut(const Case& c, const Visit& visit) {
  std::vector<int32_t> layers(c.nodes.size());
  const auto fill = [&](const auto& self, size_t n, int32_t left) -> void {
    if (n + 1 == c.nodes.size()) {
      layers[n] = left;
      visit(layers, size_t{0});
      for (size_t output = 1; output < c.nodes.size(); ++output) {
        if (std::accumulate(layers.begin() + static_cast<ptrdiff_t>(output) + 1, layers.end(), 0) == 0)
          visit(layers, output);
      }
      return;
    }
    for (layers[n] = 0; layers[n] <= left; ++layers[n]) self(self, n + 1, left - layers[n]);
  };
  fill(fill, 0, c.model.num_layers());
}

rc::Gen<Case> cases() {
  return rc::gen::exec([] {
    Case c;
    c.model = plain_model(0);
    const auto pick = [](int32_t low, int32_t end) { return *rc::gen::inRange(low, end); };
    c.model.embedding_bytes = pick(0, 40) * kMb;
    c.model.output_bytes = pick(0, 60) * kMb;
    c.model.groups = pick(0, 2) == 0 ? std::vector<UnitCacheGroup>{{.window = 0}}
                                     : std::vector<UnitCacheGroup>{{.window = 64}, {.window = 0}};
    const int32_t layers = pick(1, 7);
    for (int32_t i = 0; i < layers; ++i) {
      c.model.layers.push_back({.weight_bytes = pick(1, 20) * kMb,
                                .kv_bytes_per_token = pick(1, 5) * 20'000,
                                .cache_group = pick(0, static_cast<int32_t>(c.model.groups.size())),
                                .multiply_adds = 1});
    }
    const int32_t nodes = pick(1, 5);
    for (int32_t i = 0; i < nodes; ++i) {
      NodeOffer offer = node("n", pick(1, 9), pick(10, 300));
      offer.costs.at[0].output_seconds = pick(0, 60) * 1e-3;
      offer.costs.fixed_seconds = pick(0, 4) * 1e-3;
      offer.link.bytes_per_second = pick(1, 20) * 1e6;
      c.nodes.push_back(offer);
    }
    const int32_t rows = pick(1, 40);
    c.options = {
        .rows = rows, .output_rows = pick(0, rows + 1), .max_step_tokens = 64, .max_model_len = pick(1, 20) * 8};
    return c;
  });
}

TEST(Placement, IsAsGoodAsTheBestOfAllCuts) {
  int64_t placed = 0, refused = 0;
  EXPECT_TRUE(holds_for_histories([&] {
    const Case c = *cases();
    double fastest = kImpossibleSeconds;
    int64_t most = -1;
    for_each_cut(c, [&](const std::vector<int32_t>& layers, size_t output) {
      const Judged judged = judge(c, layers, output);
      fastest = std::min(fastest, judged.seconds);
      most = std::max(most, judged.blocks);
    });
    if (most < 0) {
      RC_ASSERT(error_of_place(c.model, c.nodes, c.options).code() == ErrorCode::kOutOfMemory);
      ++refused;
      return;
    }
    ++placed;
    for (const bool prefer_kv : {false, true}) {
      // The best by the rule, and then the fastest of these.
      const double limit = prefer_kv ? kImpossibleSeconds : fastest * 1.03;
      const auto floor = static_cast<int64_t>(prefer_kv ? std::ceil(0.97 * static_cast<double>(most)) : 0);
      int64_t best_blocks = floor;
      double best_seconds = kImpossibleSeconds;
      for (const bool second : {false, true}) {
        for_each_cut(c, [&](const std::vector<int32_t>& layers, size_t output) {
          const Judged judged = judge(c, layers, output);
          if (judged.seconds > limit || judged.blocks < floor) return;
          if (!second && !prefer_kv) best_blocks = std::max(best_blocks, judged.blocks);
          if (second && judged.blocks >= best_blocks) best_seconds = std::min(best_seconds, judged.seconds);
        });
      }
      PlacementOptions options = c.options;
      options.prefer_kv = prefer_kv;
      const Placement placement = place(c.model, c.nodes, options);
      // The same expressions in the same order: no rounding between them.
      RC_ASSERT(placement.slowest_seconds == best_seconds);
      RC_ASSERT(placement.kv_tokens >= best_blocks * kBlockTokens);
      const size_t output = placement.output_on_head() ? 0 : static_cast<size_t>(placement.stages.back().node);
      const Judged judged = judge(c, layers_of(placement), output);
      RC_ASSERT(judged.seconds == placement.slowest_seconds);
      RC_ASSERT(judged.blocks * kBlockTokens == placement.kv_tokens);
      for (size_t i = 0; i < c.nodes.size(); ++i) {
        RC_ASSERT(placement.nodes[i].memory_bytes() <= c.nodes[i].memory_bytes || !placement.nodes[i].is_used());
      }
    }
  }));
  EXPECT_GT(placed, 0);
  EXPECT_GT(refused, 0);
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
