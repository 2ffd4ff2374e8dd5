#include "cluster/node_fit.h"

#include <algorithm>
#include <cmath>

#include "kv/cache_size.h"
#include "ops/kv_layout.h"

namespace headrace::cluster {
namespace {

/// Where nothing is known of the requests: how long sequences are taken to be (as engine/cache_plan.cc does).
constexpr int32_t kTypicalTokens = 2048;
/// A stage's logits are made for as many rows at once at most (model/stage.cc).
constexpr int64_t kLogitRows = 64;

/// Packed weights take up to a tenth more than the file's.
int64_t packed(int64_t file_bytes) noexcept { return file_bytes + file_bytes / 10; }

/// Of one core, in copying a result out of the kernel and into place.
constexpr double kLogitBytesPerSecond = 1e9;

}  // namespace

double logits_seconds(const ModelUnits& model, int32_t rows) noexcept {
  return static_cast<double>(int64_t{rows} * model.vocab_size) * sizeof(float) / kLogitBytesPerSecond;
}

CacheShape::CacheShape(const ModelUnits& model, const PlacementOptions& options) {
  const int32_t longest = std::clamp(options.max_model_len, kBlockTokens, std::max(model.max_positions, kBlockTokens));
  const int32_t limit = options.max_model_len > 0 ? longest : model.max_positions;
  const int32_t typical = std::clamp(kTypicalTokens, kBlockTokens, std::max(limit, kBlockTokens));
  int64_t most = 1;
  std::vector<int64_t> held;
  for (const UnitCacheGroup& group : model.groups) {
    one_sequence_.push_back(most_blocks_held(group.window, kBlockTokens, longest, options.max_step_tokens));
    held.push_back(most_blocks_held(group.window, kBlockTokens, typical, 1));
    most = std::max(most, held.back());
  }
  for (size_t i = 0; i < held.size(); ++i) {
    share_.push_back(static_cast<double>(held[i]) / static_cast<double>(most));
    if (held[i] == most) least_blocks_ = std::max(least_blocks_, one_sequence_[i]);
  }
}

int64_t CacheShape::group_blocks(size_t group, int64_t blocks) const noexcept {
  return std::max(one_sequence_[group], static_cast<int64_t>(std::ceil(share_[group] * static_cast<double>(blocks))));
}

int64_t CacheShape::bytes_of(int64_t blocks, const std::vector<int64_t>& token_bytes) const noexcept {
  int64_t bytes = 0;
  for (size_t i = 0; i < token_bytes.size(); ++i) bytes += group_blocks(i, blocks) * token_bytes[i] * kBlockTokens;
  return bytes;
}

int64_t CacheShape::blocks_in(int64_t bytes, const std::vector<int64_t>& token_bytes) const noexcept {
  // Block ids are 32 bits wide; a quarter of that keeps tokens within 32 bits too.
  constexpr int64_t kMostBlocks = int64_t{1} << 26;
  int64_t low = least_blocks_ - 1, high = kMostBlocks;
  while (low < high) {
    const int64_t middle = low + (high - low + 1) / 2;
    if (bytes_of(middle, token_bytes) <= bytes) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low < least_blocks_ ? -1 : low;
}

NodeFit::NodeFit(const ModelUnits& model, const NodeOffer& offer, const PlacementOptions& options, bool is_head)
    : model_(model), offer_(offer), options_(options), cache_(model, options), is_head_(is_head) {
  bytes_before_.emplace_back();
  kv_before_.assign(model.groups.size(), {0});
  for (int32_t index = 0; index < model.num_sublayers(); ++index) {
    const SublayerUnit& sublayer = model.sublayers[static_cast<size_t>(index)];
    const SublayerBytes own = model.sublayer_bytes(index, index + 1);
    const SublayerBytes& before = bytes_before_.back();
    bytes_before_.push_back({before.attention + own.attention, before.feed_forward + own.feed_forward});
    for (size_t i = 0; i < kv_before_.size(); ++i) {
      const bool is_own = i == static_cast<size_t>(sublayer.cache_group);
      kv_before_[i].push_back(kv_before_[i].back() + (is_own ? sublayer.kv_bytes_per_token : 0));
    }
  }
}

double NodeFit::compute_seconds(int32_t first, int32_t end, bool output) const noexcept {
  if (holds_nothing(first, end, output)) return 0;
  const double layers =
      offer_.costs.fixed_seconds + offer_.costs.layer_seconds(sublayer_bytes(first, end), options_.rows);
  const double projection = output ? offer_.costs.output_seconds(output_rows()) : 0;
  return layers + projection + (output == is_head_ ? 0 : logits_seconds(model_, output_rows()));
}

double NodeFit::transfer_seconds(int32_t first, int32_t end, bool output) const noexcept {
  const bool is_whole = first == 0 && end == model_.num_sublayers() && output;
  if (holds_nothing(first, end, output)) return 0;
  if (output && !is_head_) {
    // The logits of rows with an output go to the head.
    return static_cast<double>(int64_t{output_rows()} * model_.vocab_size) * sizeof(float) /
           offer_.link.bytes_per_second;
  }
  if (is_whole) return 0;
  const int64_t token_bytes =
      options_.token_bytes > 0 ? options_.token_bytes : model_.hidden * static_cast<int64_t>(sizeof(float));
  // From the last layers, only rows with an output go on.
  const int32_t rows = end == model_.num_sublayers() ? output_rows() : options_.rows;
  return static_cast<double>(rows * token_bytes) / offer_.link.bytes_per_second;
}

int64_t NodeFit::weight_bytes(int32_t first, int32_t end, bool output) const noexcept {
  return packed(model_.weight_bytes({.embedding = is_head_, .output = output}) + sublayer_bytes(first, end).total());
}

int64_t NodeFit::workspace_bytes(int32_t first, int32_t end, bool output) const noexcept {
  if (holds_nothing(first, end, output)) return 0;
  int64_t token_bytes = first == end ? model_.row_workspace_bytes : model_.token_workspace_bytes;
  // Where layers and output are a stage of their own each, so is the workspace.
  const bool is_whole = first == 0 && end == model_.num_sublayers();
  if (output && is_head_ && !is_whole) token_bytes += model_.row_workspace_bytes;
  const int64_t logit_rows = std::min<int64_t>(kLogitRows, options_.max_step_tokens);
  return options_.max_step_tokens * token_bytes +
         (output ? logit_rows * model_.vocab_size * static_cast<int64_t>(sizeof(float)) : 0);
}

std::vector<int64_t> NodeFit::group_token_bytes(int32_t first, int32_t end) const {
  std::vector<int64_t> bytes;
  for (const std::vector<int64_t>& before : kv_before_) {
    bytes.push_back(before[static_cast<size_t>(end)] - before[static_cast<size_t>(first)]);
  }
  return bytes;
}

int64_t NodeFit::kv_blocks(int32_t first, int32_t end, bool output) const {
  if (holds_nothing(first, end, output)) return kNoCache;
  int64_t room = offer_.memory_bytes - weight_bytes(first, end, output) - workspace_bytes(first, end, output);
  if (room < 0) return -1;
  if (!caches(first, end)) return kNoCache;
  if (options_.kv_limit_bytes > 0) room = std::min(room, options_.kv_limit_bytes);
  return cache_.blocks_in(room, group_token_bytes(first, end));
}

int64_t NodeFit::kv_bytes(int32_t first, int32_t end, int64_t blocks) const {
  return !caches(first, end) ? 0 : cache_.bytes_of(blocks, group_token_bytes(first, end));
}

}  // namespace headrace::cluster
