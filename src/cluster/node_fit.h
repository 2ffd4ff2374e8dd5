#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "cluster/placement.h"

namespace headrace::cluster {

/// How many blocks each cache group needs for a number of tokens, all sequences together, so that at least one sequence
/// of the longest length fits: groups with windows need fewer.
class CacheShape {
 public:
  CacheShape(const ModelUnits& model, const PlacementOptions& options);

  /// Blocks of each group for `blocks` of the one that needs most.
  [[nodiscard]] int64_t group_blocks(size_t group, int64_t blocks) const noexcept;
  /// The most blocks of the group that needs most for which all fit into `bytes`; -1 where one sequence does not.
  /// `token_bytes`: of each group, in the layers concerned.
  [[nodiscard]] int64_t blocks_in(int64_t bytes, const std::vector<int64_t>& token_bytes) const noexcept;
  [[nodiscard]] int64_t bytes_of(int64_t blocks, const std::vector<int64_t>& token_bytes) const noexcept;

 private:
  std::vector<int64_t> one_sequence_;  // blocks of each group
  std::vector<double> share_;          // of each group, of the blocks of the group that needs most
  int64_t least_blocks_ = 0;           // of the group that needs most: one sequence
};

/// Seconds that `rows` rows of logits cost the machine that sends them, and the head that takes them.
[[nodiscard]] double logits_seconds(const ModelUnits& model, int32_t rows) noexcept;

/// Time and memory of the units, sublayers [first, end) and the output, that a node may be given; all of it found in
/// O(groups).
class NodeFit {
 public:
  static constexpr int64_t kNoCache = std::numeric_limits<int32_t>::max();

  NodeFit(const ModelUnits& model, const NodeOffer& offer, const PlacementOptions& options, bool is_head);

  /// With what logits cost beside the products, where they cross between machines.
  [[nodiscard]] double compute_seconds(int32_t first, int32_t end, bool output) const noexcept;
  [[nodiscard]] double transfer_seconds(int32_t first, int32_t end, bool output) const noexcept;
  [[nodiscard]] int64_t weight_bytes(int32_t first, int32_t end, bool output) const noexcept;
  [[nodiscard]] int64_t workspace_bytes(int32_t first, int32_t end, bool output) const noexcept;
  /// Blocks of the cache group that needs most for which the node has room beside these units; -1 where it has not
  /// even room for one sequence, kNoCache where it needs none.
  [[nodiscard]] int64_t kv_blocks(int32_t first, int32_t end, bool output) const;
  [[nodiscard]] int64_t kv_bytes(int32_t first, int32_t end, int64_t blocks) const;
  [[nodiscard]] const CacheShape& cache() const noexcept { return cache_; }

 private:
  [[nodiscard]] bool holds_nothing(int32_t first, int32_t end, bool output) const noexcept {
    return !is_head_ && first == end && !output;
  }
  [[nodiscard]] int32_t output_rows() const noexcept {
    return options_.output_rows > 0 ? std::min(options_.output_rows, options_.rows) : options_.rows;
  }
  [[nodiscard]] SublayerBytes sublayer_bytes(int32_t first, int32_t end) const noexcept {
    const SublayerBytes& until = bytes_before_[static_cast<size_t>(end)];
    const SublayerBytes& before = bytes_before_[static_cast<size_t>(first)];
    return {until.attention - before.attention, until.feed_forward - before.feed_forward};
  }
  /// Sublayers [first, end) with no attention among them have no cache.
  [[nodiscard]] static bool caches(int32_t first, int32_t end) noexcept {
    return StageUnits{.first_sublayer = first, .end_sublayer = end}.caches();
  }
  [[nodiscard]] std::vector<int64_t> group_token_bytes(int32_t first, int32_t end) const;

  const ModelUnits& model_;
  const NodeOffer& offer_;
  const PlacementOptions& options_;
  CacheShape cache_;
  bool is_head_;
  std::vector<SublayerBytes> bytes_before_;      // weights of the sublayers before each
  std::vector<std::vector<int64_t>> kv_before_;  // of each group: bytes a token of the sublayers before each
};

}  // namespace headrace::cluster
