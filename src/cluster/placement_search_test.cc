// The search for a placement against every cut there is.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/property_test.h"
#include "cluster/test_nodes.h"
#include "kv/cache_size.h"
#include "ops/kv_layout.h"

namespace headrace::cluster {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr int64_t kMostCuts = 10'000;

struct Case {
  ModelUnits model;
  std::vector<NodeOffer> nodes;
  PlacementOptions options;
};

/// What a node or a cut comes to, by the words of placement.h and without the tables of the search.
struct Judged {
  double seconds = 0;
  int64_t blocks = int64_t{1} << 26;  ///< -1: does not fit
  bool output_on_head = false;
};

class Judge {
 public:
  explicit Judge(const Case& c)
      : case_(c), sublayers_(c.model.num_sublayers()), longest_(std::max(c.options.max_model_len, kBlockTokens)) {
    for (const UnitCacheGroup& group : c.model.groups) {
      one_.push_back(most_blocks_held(group.window, kBlockTokens, longest_, c.options.max_step_tokens));
      share_.push_back(most_blocks_held(group.window, kBlockTokens, std::min(longest_, 2048), 1));
    }
    const double most = *std::ranges::max_element(share_);
    for (size_t g = 0; g < one_.size(); ++g) {
      share_[g] /= most;
      if (share_[g] == 1) least_ = std::max(least_, one_[g]);
    }
    known_.resize(c.nodes.size() * side() * side() * 2);
  }

  /// Sublayers of each node, and who has the output.
  Judged cut(const std::vector<int32_t>& sublayers, size_t output_node) {
    Judged all{.output_on_head = output_node == 0};
    int32_t first = 0;
    for (size_t n = 0; n < sublayers.size(); ++n) {
      const Judged one = node(n, first, first + sublayers[n], n == output_node);
      all.seconds = std::max(all.seconds, one.seconds);
      all.blocks = std::min(all.blocks, one.blocks);
      first += sublayers[n];
    }
    return all.blocks < 0 ? Judged{.seconds = kNever, .blocks = -1} : all;
  }

 private:
  [[nodiscard]] size_t side() const { return static_cast<size_t>(sublayers_) + 1; }

  Judged node(size_t n, int32_t first, int32_t end, bool output) {
    auto& known =
        known_[((n * side() + static_cast<size_t>(first)) * side() + static_cast<size_t>(end)) * 2 + (output ? 1 : 0)];
    if (!known) known = judge(n, first, end, output);
    return *known;
  }

  [[nodiscard]] Judged judge(size_t n, int32_t first, int32_t end, bool output) const {
    const bool head = n == 0;
    if (!head && first == end && !output) return {};
    const NodeOffer& offer = case_.nodes[n];
    const ModelUnits& model = case_.model;
    const PlacementOptions& options = case_.options;
    SublayerBytes weights;
    std::vector<int64_t> token_bytes(model.groups.size());
    for (int32_t i = first; i < end; ++i) {
      const SublayerUnit& sublayer = model.sublayers[static_cast<size_t>(i)];
      (i % 2 == 0 ? weights.attention : weights.feed_forward) += sublayer.weight_bytes;
      token_bytes[static_cast<size_t>(sublayer.cache_group)] += sublayer.kv_bytes_per_token;
    }
    const int64_t layer_bytes = weights.attention + weights.feed_forward;
    const int32_t outputs = options.output_rows > 0 ? options.output_rows : options.rows;
    const bool all = head && output && end == sublayers_;
    const double logit_bytes = outputs * 4.0 * model.vocab_size;
    const bool logits_cross = output != head;  // the head has none: another one sends them
    const double compute = offer.costs.fixed_seconds + offer.costs.layer_seconds(weights, options.rows) +
                           (output ? offer.costs.output_seconds(outputs) : 0) + (logits_cross ? logit_bytes / 1e9 : 0);
    const double sent = output && !head ? logit_bytes
                        : all           ? 0
                                        : (end == sublayers_ ? outputs : options.rows) * model.hidden * 4;
    Judged judged{.seconds = std::max(compute, sent / offer.link.bytes_per_second)};
    const int64_t file_bytes = layer_bytes + (head ? model.embedding_bytes : 0) + (output ? model.output_bytes : 0) -
                               (head && output ? model.shared_bytes : 0);
    const int64_t token_workspace =
        (first == end ? model.row_workspace_bytes : model.token_workspace_bytes) +
        (head && output && end < sublayers_ ? model.row_workspace_bytes : 0);  // a stage of its own
    int64_t room = offer.memory_bytes - file_bytes - file_bytes / 10 - options.max_step_tokens * token_workspace -
                   (output ? std::min(64, options.max_step_tokens) * int64_t{model.vocab_size} * 4 : 0);
    if (room < 0) return {.seconds = kNever, .blocks = -1};
    if (std::ranges::all_of(token_bytes, [](int64_t of_group) { return of_group == 0; })) return judged;
    if (options.kv_limit_bytes > 0) room = std::min(room, options.kv_limit_bytes);
    const auto fits = [&](int64_t blocks) {
      int64_t bytes = 0;
      for (size_t g = 0; g < one_.size(); ++g) {
        bytes += token_bytes[g] * kBlockTokens *
                 std::max(one_[g], static_cast<int64_t>(std::ceil(share_[g] * static_cast<double>(blocks))));
      }
      return bytes <= room;
    };
    int64_t low = least_ - 1, high = judged.blocks;
    while (low < high) {
      const int64_t middle = (low + high + 1) / 2;
      if (fits(middle)) {
        low = middle;
      } else {
        high = middle - 1;
      }
    }
    if (low < least_) return {.seconds = kNever, .blocks = -1};
    judged.blocks = low;
    return judged;
  }

  const Case& case_;
  int32_t sublayers_;
  int32_t longest_;
  std::vector<int64_t> one_;   // blocks of a sequence, of each group
  std::vector<double> share_;  // of each group, of the blocks of that with most
  int64_t least_ = 0;
  std::vector<std::optional<Judged>> known_;
};

/// Every cut: sublayers of each node, and the output on the head or on the last node that holds anything.
template <class Visit>
void for_each_cut(const Case& c, const Visit& visit) {
  std::vector<int32_t> sublayers(c.nodes.size());
  const auto fill = [&](const auto& self, size_t n, int32_t left) -> void {
    if (n + 1 == c.nodes.size()) {
      sublayers[n] = left;
      if (c.options.output_on_head.value_or(true)) visit(sublayers, size_t{0});
      if (c.options.output_on_head.value_or(false)) return;
      for (size_t output = c.nodes.size() - 1; output > 0; --output) {
        visit(sublayers, output);
        if (sublayers[output] > 0) return;
      }
      return;
    }
    for (sublayers[n] = 0; sublayers[n] <= left; ++sublayers[n]) self(self, n + 1, left - sublayers[n]);
  };
  fill(fill, 0, c.model.num_sublayers());
}

/// Ways to share out units.
int64_t count_cuts(int32_t units, int32_t nodes) {
  int64_t count = 1;
  for (int32_t i = 1; i < nodes && count <= kMostCuts; ++i) count = count * (units + i) / i;
  return count;
}

rc::Gen<Case> cases() {
  return rc::gen::exec([] {
    Case c;
    c.model = plain_model(0);
    const auto pick = [](int32_t low, int32_t end) { return *rc::gen::inRange(low, end); };
    const int32_t layers = pick(1, 13);
    c.model.groups = pick(0, 2) == 0 ? std::vector<UnitCacheGroup>{{.window = 0}}
                                     : std::vector<UnitCacheGroup>{{.window = 64}, {.window = 0}};
    for (int32_t i = 0; i < layers; ++i) {
      add_layer(c.model, pick(1, 20) * kMb, pick(1, 5) * 5'000, 1,
                pick(0, static_cast<int32_t>(c.model.groups.size())));
    }
    const bool heavy = pick(0, 2) == 1;
    const int32_t matrix_mb = heavy ? pick(1, 20 * layers) : pick(1, 20);
    c.model.vocab_size = heavy ? 50'000 : 1'000;
    c.model.embedding_bytes = matrix_mb * kMb;
    c.model.output_bytes = c.model.embedding_bytes + pick(0, 2) * kMb;
    if (pick(0, 2) == 1) c.model.shared_bytes = c.model.embedding_bytes;
    int32_t most_nodes = 1;
    while (most_nodes < 2 * layers + 2 && count_cuts(2 * layers, most_nodes + 1) <= kMostCuts) ++most_nodes;
    const int32_t nodes = pick(0, 3) == 0 ? most_nodes : pick(1, most_nodes + 1);
    const int32_t all_mb = 2 * matrix_mb + 12 * layers;
    for (int32_t i = 0; i < nodes; ++i) {
      const int32_t ms = pick(1, 9);
      NodeOffer offer = cluster::node("n", ms, 5 + pick(0, 4 * all_mb / nodes + 1));
      if (pick(0, 3) == 0) offer.memory_bytes += all_mb * kMb;
      // As many multiply-adds for each byte as in the layers, or up to twice that.
      offer.costs.at[0].output_seconds = matrix_mb * ms * pick(10, 21) * 1e-5;
      offer.costs.fixed_seconds = pick(0, 4) * 1e-3;
      offer.link.bytes_per_second = pick(0, 2) == 0 ? 1e10 : pick(1, 200) * 1e6;
      c.nodes.push_back(offer);
    }
    const int32_t rows = pick(1, 40);
    c.options = {.rows = rows,
                 .output_rows = pick(0, rows + 1),
                 .max_step_tokens = 64,
                 .max_model_len = pick(1, 20) * 8,
                 .max_num_seqs = pick(0, 2) * pick(0, 200),
                 .kv_limit_bytes = pick(0, 4) == 0 ? pick(1, 40) * kMb : 0};
    if (const int32_t where = pick(0, 6); where < 2) c.options.output_on_head = where == 1;
    return c;
  });
}

struct Best {
  double seconds = kNever;
  int64_t blocks = 0;
};

/// The best by the rule, of cuts that fit.
Best best_of(std::vector<Judged> all, const PlacementOptions& options, bool prefer_kv) {
  const auto drop = [&](const auto& unfit) { std::erase_if(all, unfit); };
  const auto least_seconds = [&] { return std::ranges::min(all, {}, &Judged::seconds).seconds; };
  const auto most_blocks = [&] { return std::ranges::max(all, {}, &Judged::blocks).blocks; };
  if (most_blocks() >= options.max_num_seqs) drop([&](const Judged& j) { return j.blocks < options.max_num_seqs; });
  if (prefer_kv) {
    const double enough = 0.97 * static_cast<double>(most_blocks());
    drop([&](const Judged& j) { return static_cast<double>(j.blocks) < enough; });
  }
  const double limit = least_seconds() * 1.03;
  if (!prefer_kv) drop([&](const Judged& j) { return j.seconds > limit; });
  if (std::ranges::any_of(all, [&](const Judged& j) { return j.output_on_head && j.seconds <= limit; })) {
    drop([](const Judged& j) { return !j.output_on_head; });
  }
  if (!prefer_kv) {
    const int64_t most = most_blocks();
    drop([&](const Judged& j) { return j.blocks < most; });
  }
  const double fastest = least_seconds();
  drop([&](const Judged& j) { return j.seconds > fastest; });
  return {fastest, most_blocks()};
}

std::vector<int32_t> sublayers_of(const Placement& placement) {
  std::vector<int32_t> all;
  for (const NodeShare& share : placement.nodes) all.push_back(share.units.num_sublayers());
  return all;
}

/// How often something was chosen, so that the cases are known to ask for all of it.
struct Chosen {
  int64_t refused = 0, node_left_out = 0, one_unit_each = 0, inside_a_layer = 0, more_sequences = 0;
  int64_t output_on_head = 0, on_head_without_layers = 0, on_last = 0, alone = 0;
};

void count(const Case& c, const Placement& placement, Chosen& chosen) {
  const NodeShare& head = placement.nodes.front();
  const StageUnits& last = placement.stages.back().units;
  const bool spread = placement.stages.size() > 1;
  chosen.output_on_head += head.units.output && head.units.num_sublayers() > 0 ? 1 : 0;
  chosen.on_head_without_layers += head.units.output && head.units.num_sublayers() == 0 ? 1 : 0;
  chosen.on_last += !head.units.output && last.num_sublayers() > 0 ? 1 : 0;
  chosen.alone += spread && !head.units.output && last.num_sublayers() == 0 ? 1 : 0;
  chosen.node_left_out += std::ranges::count_if(placement.nodes, [](const NodeShare& s) { return !s.is_used(); });
  chosen.one_unit_each += static_cast<int32_t>(placement.stages.size()) == c.model.num_sublayers() + 2 ? 1 : 0;
  chosen.inside_a_layer +=
      std::ranges::count_if(placement.nodes, [](const NodeShare& s) { return s.units.end_sublayer % 2 != 0; });
}

TEST(PlacementSearch, IsAsGoodAsTheBestOfAllCuts) {
  Chosen chosen;
  EXPECT_TRUE(holds_for_histories([&] {
    const Case c = *cases();
    Judge judge(c);
    std::vector<Judged> all;
    for_each_cut(c, [&](const std::vector<int32_t>& sublayers, size_t output) {
      const Judged judged = judge.cut(sublayers, output);
      if (judged.blocks >= 0) all.push_back(judged);
    });
    if (all.empty()) {
      RC_ASSERT(error_of_place(c.model, c.nodes, c.options).code() == ErrorCode::kOutOfMemory);
      ++chosen.refused;
      return;
    }
    for (const bool prefer_kv : {false, true}) {
      const Best best = best_of(all, c.options, prefer_kv);
      PlacementOptions options = c.options;
      options.prefer_kv = prefer_kv;
      const Placement placement = place(c.model, c.nodes, options);
      count(c, placement, chosen);
      // The same expressions in the same order: no rounding between them.
      RC_ASSERT(placement.slowest_seconds == best.seconds);
      RC_ASSERT(placement.kv_tokens == best.blocks * kBlockTokens);
      RC_ASSERT(placement.kv_tokens >= c.options.max_model_len);
      const size_t output = placement.output_on_head() ? 0 : static_cast<size_t>(placement.stages.back().node);
      const Judged judged = judge.cut(sublayers_of(placement), output);
      RC_ASSERT(judged.seconds == placement.slowest_seconds);
      RC_ASSERT(judged.blocks * kBlockTokens == placement.kv_tokens);
      for (size_t i = 0; i < c.nodes.size(); ++i) {
        const NodeShare& share = placement.nodes[i];
        RC_ASSERT(share.memory_bytes() <= c.nodes[i].memory_bytes || !share.is_used());
        RC_ASSERT(c.options.kv_limit_bytes == 0 || share.kv_bytes <= c.options.kv_limit_bytes);
      }
      if (prefer_kv) continue;
      const bool enough = best.blocks >= c.options.max_num_seqs;
      double fastest = kNever;
      for (const Judged& j : all) {
        if (!enough || j.blocks >= c.options.max_num_seqs) fastest = std::min(fastest, j.seconds);
      }
      RC_ASSERT(placement.slowest_seconds <= 1.03 * fastest);
      chosen.more_sequences += fastest > std::ranges::min(all, {}, &Judged::seconds).seconds ? 1 : 0;
    }
  }));
  for (const int64_t number :
       {chosen.refused, chosen.node_left_out, chosen.one_unit_each, chosen.inside_a_layer, chosen.more_sequences,
        chosen.output_on_head, chosen.on_head_without_layers, chosen.on_last, chosen.alone}) {
    EXPECT_GT(number, 0);
  }
}

/// A vocabulary of 262144 over a hidden size of 640 in Q8_0, tied, and 18 small layers: the output is three quarters of
/// all products.
ModelUnits vocabulary_heavy_model() {
  constexpr int64_t kHidden = 640, kFeedForward = 640, kVocabulary = 262'144, kKeys = 128;
  const auto bytes = [](int64_t weights) { return weights / 32 * 34; };
  constexpr int64_t kLayerWeights = 2 * kHidden * kHidden + 2 * kHidden * kKeys + 3 * kHidden * kFeedForward;
  ModelUnits model;
  model.embedding_bytes = model.output_bytes = model.shared_bytes = bytes(kVocabulary * kHidden);
  model.output_multiply_adds = kVocabulary * kHidden;
  for (int i = 0; i < 18; ++i) add_layer(model, bytes(kLayerWeights), 2 * 2 * kKeys, kLayerWeights);
  model.groups = {{.window = 0}};
  model.hidden = kHidden;
  model.vocab_size = kVocabulary;
  model.max_positions = 8192;
  model.token_workspace_bytes = 30'000;
  model.row_workspace_bytes = 12'000;
  return model;
}

/// The placement of that model on three nodes of these speeds, in 10^9 operations a second; it is checked to be within
/// 5 % of the best there is.
Placement place_vocabulary(const std::vector<double>& gops, double link_bytes_per_second) {
  Case c{.model = vocabulary_heavy_model(), .nodes = {}, .options = {.rows = 80, .output_rows = 16}};
  for (const double speed : gops) {
    const DataSheet sheet{.bytes_per_second = 40e9, .operations_per_second = speed * 1e9};
    c.nodes.push_back({.name = cat("n", c.nodes.size()),
                       .memory_bytes = 2'000 * kMb,
                       .costs = roofline(sheet, c.model),
                       .link = {.bytes_per_second = link_bytes_per_second}});
  }
  Judge judge(c);
  double best = kNever;
  for_each_cut(c, [&](const std::vector<int32_t>& sublayers, size_t output) {
    best = std::min(best, judge.cut(sublayers, output).seconds);
  });
  Placement placement = place(c.model, c.nodes, c.options);
  EXPECT_LE(placement.slowest_seconds, 1.05 * best) << placement.reason;
  return placement;
}

TEST(PlacementSearch, AHeavyVocabularyHasANodeOfItsOwn) {
  // Of equal nodes it is the head, which then sends no logits anywhere.
  const Placement equal = place_vocabulary({400, 400, 400}, 1.25e9);
  EXPECT_TRUE(equal.output_on_head());
  EXPECT_EQ(layers_of(equal), (std::vector<double>{0, 9, 9}));
  // A head of a third of the speed leaves it to the last node, alone but for half a small layer.
  const Placement slow_head = place_vocabulary({130, 400, 400}, 1.25e9);
  EXPECT_FALSE(slow_head.output_on_head());
  EXPECT_LE(layers_of(slow_head).back(), 0.5);
  EXPECT_TRUE(slow_head.nodes.back().units.output);
  // Not over a gigabit, where 16 rows of logits take 134 ms.
  const Placement slow_link = place_vocabulary({130, 400, 400}, 1.25e8);
  EXPECT_TRUE(slow_link.output_on_head());
  EXPECT_EQ(layers_of(slow_link).front(), 0);
}

/// llama-1b with weights in Q4_K, the tied matrix in Q6_K (sizes in bytes), a cache in f16.
ModelUnits llama_1b() {
  ModelUnits model;
  model.embedding_bytes = model.shared_bytes = 82'575'360;
  model.output_bytes = model.embedding_bytes + 8192;
  model.output_multiply_adds = 49'152 * 2048.0;
  for (int i = 0; i < 16; ++i) add_layer(model, 34'226'176, 2048, 60.8e6);
  model.groups = {{.window = 0}};
  model.hidden = 2048;
  model.vocab_size = 49'152;
  model.max_positions = 32'768;
  model.token_workspace_bytes = 160'000;
  model.row_workspace_bytes = 37'000;
  return model;
}

TEST(PlacementSearch, TwoNodesCacheAlmostTwiceAsManyTokensAsOne) {
  const ModelUnits model = llama_1b();
  const NodeOffer offer{.name = "n",
                        .memory_bytes = int64_t{2} << 30,
                        .costs = roofline({.bytes_per_second = 10e9, .operations_per_second = 300e9}, model),
                        .link = {}};
  const PlacementOptions options{.rows = 48, .output_rows = 16, .max_step_tokens = 1024, .max_num_seqs = 256};
  const Placement one = place(model, std::vector{offer}, options);
  for (const double speed : {0.8, 1.0, 1.25}) {  // as far as measurements of equal machines may be apart
    NodeOffer other = offer;
    other.costs = roofline({.bytes_per_second = 10e9 * speed, .operations_per_second = 300e9 * speed}, model);
    const Placement two = place(model, std::vector{offer, other}, options);
    EXPECT_GE(static_cast<double>(two.kv_tokens), 1.9 * static_cast<double>(one.kv_tokens)) << two.reason;
    // Where that costs little, logits stay on the head.
    EXPECT_TRUE(two.output_on_head() || speed > 1) << two.reason;
  }
}

TEST(PlacementSearch, LongSequencesDecideWhereTimeWouldNot) {
  // Time wants the layers on the fast head, whose memory has no room beside them for what is asked for.
  const ModelUnits model = plain_model(10);
  const std::vector<NodeOffer> nodes{cluster::node("head", 1, 160), cluster::node("a", 4, 400)};
  PlacementOptions options{.max_num_seqs = 1};
  const auto head_layers = [&] { return layers_of(place(model, nodes, options)).front(); };
  const double unbound = head_layers();
  EXPECT_GE(place(model, nodes, options).kv_tokens, kBlockTokens);
  options.max_model_len = 4096;  // 4 MB a layer
  const double long_sequence = head_layers();
  EXPECT_LT(long_sequence, unbound);
  EXPECT_GE(place(model, nodes, options).kv_tokens, 4096);
  options = {.max_num_seqs = 512};  // 8 MB a layer
  EXPECT_LT(head_layers(), long_sequence);
  EXPECT_GE(place(model, nodes, options).kv_tokens, 512 * kBlockTokens);
  options.max_num_seqs = 1 << 20;  // no cut has that many blocks
  EXPECT_EQ(head_layers(), unbound);
  // A limit on the cache spreads layers, and is in the refusal.
  options = {.max_model_len = 4096, .kv_limit_bytes = 25 * kMb};
  EXPECT_EQ(layers_of(place(model, nodes, options)), (std::vector<double>{6, 4}));
  options.kv_limit_bytes = 12 * kMb;
  const Error error = error_of_place(model, nodes, options);
  EXPECT_EQ(error.code(), ErrorCode::kOutOfMemory);
  for (const char* part : {"head: 160.0 MB hold 2 layers", "a: 400.0 MB hold 2.5 layers", "one sequence of 4096 tokens",
                           "at most 12.0 MB of KV cache by --kv-cache-memory-bytes"}) {
    EXPECT_NE(error.message().find(part), std::string::npos) << error.message();
  }
}

}  // namespace
}  // namespace headrace::cluster
