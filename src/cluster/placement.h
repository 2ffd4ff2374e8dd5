#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cluster/model_units.h"
#include "cluster/node_costs.h"

namespace headrace::cluster {

/// The way from a node to the next one of the pipeline.
struct NodeLink {
  double bytes_per_second = 1.25e8;  ///< 1 Gbit/s
  double round_trip_seconds = 2e-4;
};

/// A machine that may hold units. The first of a list is the head.
struct NodeOffer {
  std::string name;
  int64_t memory_bytes = 0;  ///< that weights, workspace and KV cache may take together
  NodeCosts costs;
  NodeLink link;
};

struct PlacementOptions {
  int32_t rows = 16;              ///< of a step for which times are compared
  int32_t output_rows = 0;        ///< of these rows, those that have an output; 0: all, as in steps without prompts
  int32_t max_step_tokens = 512;  ///< what the workspace is for, and the longest chunk of a prompt
  int32_t max_model_len = 0;      ///< tokens of the one sequence that must fit; 0: as many as there is room for
  int32_t max_num_seqs = 0;       ///< for which there are to be blocks, one each, where a cut allows it
  int64_t kv_limit_bytes = 0;     ///< of the KV cache of each node; 0: none
  int64_t token_bytes = 0;        ///< of a token's activations between nodes; 0: f32
  bool prefer_kv = false;         ///< most KV tokens first, then the fastest cut within 3 % of them
  std::vector<double> layers{};   ///< of each node, in halves (--pipeline-layers); empty: found
  /// none: found. false, with `layers`: the last node has the output, whether it has layers or not.
  std::optional<bool> output_on_head{};
};

/// A stage of the pipeline.
struct PlacedStage {
  int32_t node = 0;  ///< index into the nodes
  StageUnits units;
  bool operator==(const PlacedStage&) const = default;
};

/// What one node is to do. A node that holds nothing has no units and no figures.
struct NodeShare {
  StageUnits units;             ///< the head's embedding and layers; output where it holds the output projection too
  double compute_seconds = 0;   ///< of a step at the reference rows
  double transfer_seconds = 0;  ///< of what it sends on, which overlaps with computing
  int64_t weight_bytes = 0;     ///< packed, from above
  int64_t workspace_bytes = 0;
  int64_t kv_bytes = 0;
  int64_t kv_tokens = 0;  ///< that its memory has room for; the least of all nodes is what the pipeline has

  [[nodiscard]] bool is_used() const noexcept { return units.embedding || units.output || units.num_sublayers() > 0; }
  [[nodiscard]] double seconds() const noexcept { return std::max(compute_seconds, transfer_seconds); }
  [[nodiscard]] int64_t memory_bytes() const noexcept { return weight_bytes + workspace_bytes + kv_bytes; }
};

/// Which node holds which units.
struct Placement {
  std::vector<NodeShare> nodes;  ///< one for each offer
  /// In the order of the forward pass: the head, the workers that are used, and, where the output projection is the
  /// head's beside workers, the head again with the output alone.
  std::vector<PlacedStage> stages;
  int32_t slowest_node = 0;
  double slowest_seconds = 0;
  int64_t kv_tokens = 0;
  std::vector<int32_t> group_blocks;  ///< of each cache group, for these tokens; the same on every node
  std::string reason;                 ///< one line for the log

  [[nodiscard]] bool output_on_head() const noexcept { return nodes.front().units.output; }
};

/// Chooses the cut with the fastest slowest node; among cuts within 3 % of it one with the output on the head, if there
/// is any, and with the most KV tokens; among those the fastest, and of those the evenest. The output projection may be
/// the head's, which then computes its layers and it in turn, or the last worker's, which costs both what their logits
/// take. Nodes are used in their order, and may be left out. Cuts without a KV block for each of max_num_seqs count
/// only where all are. Exact. Throws Error: kOutOfMemory, one line with the figures of every node, where the model or
/// one sequence does not fit; kInvalidArgument where options.layers does not fit model and nodes.
[[nodiscard]] Placement place(const ModelUnits& model, std::span<const NodeOffer> nodes,
                              const PlacementOptions& options);

/// What is left when a node is lost.
struct NodeLoss {
  int32_t node = 0;
  std::optional<Placement> rest;  ///< of the other nodes, in their order; none: they cannot hold the model
};
/// For each node but the head, whose loss nothing survives. options.layers is left out of account.
[[nodiscard]] std::vector<NodeLoss> losses(const ModelUnits& model, std::span<const NodeOffer> nodes,
                                           const PlacementOptions& options);

}  // namespace headrace::cluster
