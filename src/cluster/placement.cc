#include "cluster/placement.h"

#include <fmt/format.h>

#include <cmath>
#include <numeric>

#include "base/error.h"
#include "cluster/cut_search.h"
#include "cluster/node_fit.h"
#include "ops/kv_layout.h"

namespace headrace::cluster {
namespace {

constexpr double kNearlyAsGood = 0.03;

double megabytes(int64_t bytes) { return static_cast<double>(bytes) / 1e6; }

/// Every cell of the search, computed once: what each node would take for each range of sublayers.
class Search {
 public:
  Search(const ModelUnits& model, std::span<const NodeOffer> nodes, const PlacementOptions& options)
      : model_(model),
        nodes_(nodes),
        options_(options),
        output_on_head_(options.output_on_head),
        sublayers_(model.num_sublayers()) {
    for (size_t i = 0; i < nodes.size(); ++i) fits_.emplace_back(model, nodes[i], options, i == 0);
    const auto side = static_cast<size_t>(sublayers_ + 1);
    cells_.resize(nodes.size() * 2 * side * side);
    for (int32_t node = 0; node < num_nodes(); ++node) {
      for (const bool output : {false, true}) {
        for (int32_t first = 0; first <= (node == 0 ? 0 : sublayers_); ++first) {
          for (int32_t end = first; end <= sublayers_; ++end)
            cell(node, first, end, output) = make(node, first, end, output);
        }
      }
    }
  }

  [[nodiscard]] std::optional<Cut> run(std::string& why) {
    int64_t least = options_.max_num_seqs;
    std::optional<Cut> fastest = fastest_with(least, kImpossible);
    if (!fastest) fastest = fastest_with(least = 0, kImpossible);
    if (!fastest) return std::nullopt;
    double slowest = 0;
    int64_t blocks = 0;
    if (options_.prefer_kv) {
      const int64_t most = blocks_of(*most_kv(kImpossible));
      const auto nearly = static_cast<int64_t>(std::ceil((1 - kNearlyAsGood) * static_cast<double>(most)));
      least = std::max(nearly, least);
      prefer_output_on_head(least, fastest_with(least, kImpossible)->cost * (1 + kNearlyAsGood));
      slowest = fastest_with(least, kImpossible)->cost;
      blocks = blocks_of(*most_kv(slowest));
      why = fmt::format("the fastest within 3 % of the most KV tokens, {}", most * kBlockTokens);
    } else {
      const double limit = fastest->cost * (1 + kNearlyAsGood);
      prefer_output_on_head(least, limit);
      blocks = blocks_of(*most_kv(limit));
      slowest = fastest_with(blocks, limit)->cost;
      why = fmt::format("the most KV tokens within 3 % of the fastest, {:.3g} ms", fastest->cost * 1e3);
    }
    // Of what is left, the evenest: steps of little work then come back soonest.
    return best(CutObjective::kSum, [&](const Cell& c) {
      return c.blocks >= blocks && c.seconds <= slowest ? c.seconds * c.seconds : kImpossible;
    });
  }

  [[nodiscard]] Placement describe(const Cut& cut) const;
  [[nodiscard]] std::string misfit() const;
  /// Of layers cut evenly; infinite where that does not fit.
  [[nodiscard]] double even_seconds() const {
    double least = kImpossible;
    for (const int32_t output_node : {0, num_nodes() - 1}) {
      double slowest = 0;
      for (int32_t i = 0; i < num_nodes(); ++i) {
        const Cell& c = cell(i, even_end(i), even_end(i + 1), i == output_node);
        slowest = std::max(slowest, c.blocks < 0 ? kImpossible : c.seconds);
      }
      least = std::min(least, slowest);
    }
    return least;
  }

 private:
  /// Where the first `nodes` nodes end if each has as many layers.
  [[nodiscard]] int32_t even_end(int32_t nodes) const noexcept {
    return kSublayers * (model_.num_layers() * nodes / num_nodes());
  }

  struct Cell {
    double seconds = 0;
    int64_t blocks = -1;  // as NodeFit::kv_blocks
  };

  [[nodiscard]] int32_t num_nodes() const noexcept { return static_cast<int32_t>(nodes_.size()); }
  [[nodiscard]] const NodeFit& fit(int32_t node) const noexcept { return fits_[static_cast<size_t>(node)]; }
  [[nodiscard]] size_t index(int32_t node, int32_t first, int32_t end, bool output) const noexcept {
    const auto side = static_cast<size_t>(sublayers_ + 1);
    return ((static_cast<size_t>(node) * 2 + (output ? 1 : 0)) * side + static_cast<size_t>(first)) * side +
           static_cast<size_t>(end);
  }
  [[nodiscard]] const Cell& cell(int32_t node, int32_t first, int32_t end, bool output) const noexcept {
    return cells_[index(node, first, end, output)];
  }
  [[nodiscard]] Cell& cell(int32_t node, int32_t first, int32_t end, bool output) noexcept {
    return cells_[index(node, first, end, output)];
  }
  [[nodiscard]] Cell make(int32_t node, int32_t first, int32_t end, bool output) const {
    return {std::max(fit(node).compute_seconds(first, end, output), fit(node).transfer_seconds(first, end, output)),
            fit(node).kv_blocks(first, end, output)};
  }
  /// Whether layers given by hand allow it. Whoever cuts by hand and asks for the output on the last stage means the
  /// last node, with layers or not.
  [[nodiscard]] bool is_asked(int32_t node, int32_t first, int32_t end, bool output) const noexcept {
    if (options_.layers.empty()) return true;
    if (output && options_.output_on_head == false && node + 1 < num_nodes()) return false;
    return end - first == kSublayers * options_.layers[static_cast<size_t>(node)];
  }
  /// From now on, unless it is said where the output is or no such cut has these blocks in that time.
  void prefer_output_on_head(int64_t blocks, double limit) {
    if (output_on_head_) return;
    output_on_head_ = true;
    if (!fastest_with(blocks, limit)) output_on_head_.reset();
  }
  template <class CostOfCell>
  [[nodiscard]] std::optional<Cut> best(CutObjective objective, const CostOfCell& cost) const {
    return best_cut(num_nodes(), sublayers_, output_on_head_, objective,
                    [&](int32_t node, int32_t first, int32_t end, bool output) {
                      const Cell& c = cell(node, first, end, output);
                      return is_asked(node, first, end, output) && c.blocks >= 0 ? cost(c) : kImpossible;
                    });
  }
  [[nodiscard]] std::optional<Cut> fastest_with(int64_t blocks, double limit) const {
    return best(CutObjective::kGreatest,
                [&](const Cell& c) { return c.blocks >= blocks && c.seconds <= limit ? c.seconds : kImpossible; });
  }
  [[nodiscard]] std::optional<Cut> most_kv(double limit) const {
    return best(CutObjective::kGreatest,
                [&](const Cell& c) { return c.seconds <= limit ? -static_cast<double>(c.blocks) : kImpossible; });
  }
  [[nodiscard]] static int64_t blocks_of(const Cut& most_kv) noexcept { return static_cast<int64_t>(-most_kv.cost); }

  const ModelUnits& model_;
  std::span<const NodeOffer> nodes_;
  const PlacementOptions& options_;
  std::optional<bool> output_on_head_;  // that is left to choose from
  int32_t sublayers_;
  std::vector<NodeFit> fits_;
  std::vector<Cell> cells_;
};

Placement Search::describe(const Cut& cut) const {
  Placement placement;
  int64_t blocks = NodeFit::kNoCache;
  for (int32_t i = 0; i < num_nodes(); ++i) {
    const int32_t first = cut.first(static_cast<size_t>(i)), end = cut.ends[static_cast<size_t>(i)];
    const bool output = i == cut.output_node;
    NodeShare share{.units = {.embedding = i == 0, .first_sublayer = first, .end_sublayer = end, .output = output},
                    .compute_seconds = fit(i).compute_seconds(first, end, output),
                    .transfer_seconds = fit(i).transfer_seconds(first, end, output)};
    if (share.is_used()) {
      share.weight_bytes = fit(i).weight_bytes(first, end, output);
      share.workspace_bytes = fit(i).workspace_bytes(first, end, output);
    }
    const int64_t own = fit(i).kv_blocks(first, end, output);
    share.kv_tokens = share.units.caches() ? own * kBlockTokens : 0;
    blocks = std::min(blocks, own);
    if (share.seconds() > placement.slowest_seconds) {
      placement.slowest_seconds = share.seconds();
      placement.slowest_node = i;
    }
    placement.nodes.push_back(share);
    StageUnits units = share.units;
    const bool output_follows = i == 0 && output && end < sublayers_;
    if (output_follows) units.output = false;
    if (share.is_used()) placement.stages.push_back({.node = i, .units = units});
  }
  if (placement.nodes.front().units.output && placement.stages.size() > 1) {
    placement.stages.push_back(
        {.node = 0,
         .units = {.embedding = false, .first_sublayer = sublayers_, .end_sublayer = sublayers_, .output = true}});
  }
  placement.kv_tokens = blocks * kBlockTokens;
  for (size_t g = 0; g < model_.groups.size(); ++g) {
    placement.group_blocks.push_back(static_cast<int32_t>(fits_.front().cache().group_blocks(g, blocks)));
  }
  for (size_t i = 0; i < placement.nodes.size(); ++i) {
    const StageUnits& units = placement.nodes[i].units;
    placement.nodes[i].kv_bytes = fits_[i].kv_bytes(units.first_sublayer, units.end_sublayer, blocks);
  }
  return placement;
}

std::string Search::misfit() const {
  int64_t layer_bytes = 0, token_bytes = 0;
  for (const SublayerUnit& sublayer : model_.sublayers) {
    layer_bytes += sublayer.weight_bytes;
    token_bytes += sublayer.kv_bytes_per_token;
  }
  std::string text = fmt::format(
      "the model does not fit on the nodes: its {} layers are {:.1f} MB and {} bytes of KV cache a token, embedding "
      "{:.1f} "
      "MB, output {:.1f} MB",
      model_.num_layers(), megabytes(layer_bytes), token_bytes, megabytes(model_.embedding_bytes),
      megabytes(model_.output_bytes));
  for (int32_t i = 0; i < num_nodes(); ++i) {
    const auto layers_held = [&](bool output) {
      int32_t most = -1;
      for (int32_t first = 0; first <= (i == 0 ? 0 : sublayers_); ++first) {
        for (int32_t end = first; end <= sublayers_; ++end) {
          if (cell(i, first, end, output).blocks >= 0) most = std::max(most, end - first);
        }
      }
      return most;
    };
    const auto held_text = [](int32_t sublayers) {
      return sublayers < 0 ? std::string("nothing") : cat(in_layers(sublayers), " layers");
    };
    text += fmt::format("; {}: {:.1f} MB hold {}, with the output {}", printable(nodes_[static_cast<size_t>(i)].name),
                        megabytes(nodes_[static_cast<size_t>(i)].memory_bytes), held_text(layers_held(false)),
                        held_text(layers_held(true)));
    if (!options_.layers.empty()) text += fmt::format(", {} asked for", options_.layers[static_cast<size_t>(i)]);
  }
  return text + fmt::format(
                    " (each with a workspace for {} tokens and {}{}): give the nodes more memory, add a node, or lower "
                    "--max-model-len or --max-num-batched-tokens",
                    options_.max_step_tokens,
                    options_.max_model_len > 0 ? cat("one sequence of ", options_.max_model_len, " tokens")
                                               : std::string("a block of KV cache"),
                    options_.kv_limit_bytes > 0
                        ? fmt::format(", at most {:.1f} MB of KV cache by --kv-cache-memory-bytes",
                                      megabytes(options_.kv_limit_bytes))
                        : std::string());
}

void check_options(const ModelUnits& model, std::span<const NodeOffer> nodes, const PlacementOptions& options) {
  const auto fail = [](const std::string& what) { throw Error(ErrorCode::kInvalidArgument, what); };
  if (nodes.empty() || model.sublayers.empty())
    fail(cat("a placement of ", model.num_layers(), " layers on ", nodes.size(), " nodes"));
  for (const NodeOffer& node : nodes) {
    check_costs(node.costs, node.name);
    if (!(node.link.bytes_per_second > 0)) fail(cat("node ", printable(node.name), ": a link without bandwidth"));
  }
  if (options.max_model_len > model.max_positions) {
    fail(cat("--max-model-len ", options.max_model_len, ": the model has ", model.max_positions, " positions"));
  }
  if (options.layers.empty()) return;
  if (options.layers.size() != nodes.size()) {
    fail(cat("--pipeline-layers: ", options.layers.size(), " numbers for ", nodes.size(),
             " nodes; expected one for each, the head first"));
  }
  double sum = 0;
  for (const double layers : options.layers) {
    const bool is_number = layers >= 0 && layers <= model.num_layers();
    if (!is_number || std::floor(kSublayers * layers) != kSublayers * layers) {
      fail(cat("--pipeline-layers: ", layers, " layers; expected numbers from 0 to ", model.num_layers(),
               ", whole or with .5"));
    }
    sum += layers;
  }
  if (sum != model.num_layers()) {
    fail(cat("--pipeline-layers: they add up to ", sum, " layers; the model has ", model.num_layers()));
  }
}

std::string reason_text(const Placement& placement, std::span<const NodeOffer> nodes, const PlacementOptions& options,
                        const std::string& why, double even_seconds) {
  std::string text;
  size_t poorest = 0;
  for (size_t i = 0; i < nodes.size(); ++i) {
    const NodeShare& share = placement.nodes[i];
    const std::string name = printable(nodes[i].name);
    if (!text.empty()) text += ", ";
    text += cat(name, ": ", layers_text(share.units));
    if (share.units.output) text += " and output";
    if (share.units.caches() &&
        (placement.nodes[poorest].kv_tokens == 0 || share.kv_tokens < placement.nodes[poorest].kv_tokens)) {
      poorest = i;
    }
  }
  text += fmt::format(
      "; slowest {} with {:.3g} ms for {} rows{}", printable(nodes[static_cast<size_t>(placement.slowest_node)].name),
      placement.slowest_seconds * 1e3, options.rows,
      placement.nodes[static_cast<size_t>(placement.slowest_node)].transfer_seconds == placement.slowest_seconds
          ? " (its link)"
          : "");
  if (nodes.size() > 1 && std::isfinite(even_seconds)) {
    text += fmt::format(" (equal layers: {:.3g} ms)", even_seconds * 1e3);
  }
  text += fmt::format("; {} KV tokens, bounded by {}; ", placement.kv_tokens, printable(nodes[poorest].name));
  return text + (options.layers.empty() ? why : "layers as asked for");
}

}  // namespace

Placement place(const ModelUnits& model, std::span<const NodeOffer> nodes, const PlacementOptions& options) {
  check_options(model, nodes, options);
  Search search(model, nodes, options);
  std::string why;
  const std::optional<Cut> cut = search.run(why);
  if (!cut) throw Error(ErrorCode::kOutOfMemory, search.misfit());
  Placement placement = search.describe(*cut);
  placement.reason = reason_text(placement, nodes, options, why, search.even_seconds());
  return placement;
}

std::vector<NodeLoss> losses(const ModelUnits& model, std::span<const NodeOffer> nodes,
                             const PlacementOptions& options) {
  std::vector<NodeLoss> all;
  PlacementOptions rest_options = options;
  rest_options.layers.clear();
  for (size_t lost = 1; lost < nodes.size(); ++lost) {
    std::vector<NodeOffer> rest(nodes.begin(), nodes.end());
    rest.erase(rest.begin() + static_cast<ptrdiff_t>(lost));
    NodeLoss loss{.node = static_cast<int32_t>(lost), .rest = std::nullopt};
    try {
      loss.rest = place(model, rest, rest_options);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kOutOfMemory) throw;
    }
    all.push_back(std::move(loss));
  }
  return all;
}

}  // namespace headrace::cluster
