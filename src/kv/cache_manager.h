#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/ids.h"
#include "step/step_plan.h"

namespace headrace {

/// Blocks of one cache group, and how far back its layers look.
struct CacheGroupConfig {
  int32_t num_blocks = 0;
  int32_t window = 0;  ///< positions that a query sees, itself included; 0: all
};

struct CacheConfig {
  std::vector<CacheGroupConfig> groups;
  int32_t block_tokens = 16;
  bool prefix_caching = true;
};

/// What the cache holds and what became of it since the start.
struct CacheFigures {
  int64_t total_blocks = 0;
  int64_t used_blocks = 0;    ///< of sequences
  int64_t cached_blocks = 0;  ///< of prefixes that no sequence holds: given up when blocks are short
  int64_t used_tokens = 0;    ///< positions of sequences that are written; against used_blocks: fragmentation
  int64_t query_tokens = 0;   ///< that open() was asked for
  int64_t hit_tokens = 0;     ///< of these, found
  int64_t evicted_blocks = 0;
};

/// The blocks of all sequences and of the prefixes they leave behind, for every cache group. It only decides; stages
/// hold the contents and learn of it by plans. Stages run steps in order, so a block may be shared, freed or used again
/// as soon as the last step that writes it was submitted.
/// Threading: the scheduler's thread only.
/// Invariants: a block is free, cached, or held by sequences; a block that is shared or findable is never written.
class CacheManager {
 public:
  explicit CacheManager(CacheConfig config);
  ~CacheManager();

  /// A sequence begins with the longest prefix of `tokens` that is cached under `salt`, in whole blocks, at most
  /// tokens.size() - 1 tokens, so that something is left to compute. Returns that number of tokens.
  int32_t open(SequenceId sequence, std::span<const TokenId> tokens, uint64_t salt);
  /// Room for the positions below `end`; unused prefixes are given up for it, the least recently used first. false, and
  /// no change, where there are too few blocks.
  [[nodiscard]] bool reserve(SequenceId sequence, int32_t end);
  /// The positions below `end` of `tokens` are in submitted steps: whole blocks may be found from now on, and window
  /// groups give back blocks that no later position sees.
  void submitted(SequenceId sequence, std::span<const TokenId> tokens, int32_t end);
  /// `child` begins as the first `length` tokens of `parent`, all of them in submitted steps: whole blocks are shared,
  /// the last partial one is copied by the copies that come back, which belong into the next plan. nullopt, and no
  /// change, where there is no block for it.
  [[nodiscard]] std::optional<std::vector<BlockCopy>> fork(SequenceId parent, SequenceId child, int32_t length);
  /// The sequence is finished or preempted. Its whole blocks can still be found until they are given up.
  void close(SequenceId sequence);

  /// The block table, by position / block_tokens. Entries that a window group gave back are stale: never read.
  [[nodiscard]] std::span<const BlockId> table(SequenceId sequence, int32_t group) const;
  /// Whether a sequence of that many tokens, computed in chunks of at most `chunk_tokens`, fits when it is alone.
  [[nodiscard]] bool fits(int32_t tokens, int32_t chunk_tokens) const noexcept;
  /// Positions that could be reserved in addition now, were all unused prefixes given up: the least over the groups.
  [[nodiscard]] int64_t available_tokens() const noexcept;
  /// Forgets all prefixes that no sequence holds, and makes none of the present ones findable.
  void clear_prefixes();
  /// Changes the number of blocks of a group. false, and no change, where blocks beyond the new end are in use.
  [[nodiscard]] bool resize(int32_t group, int32_t num_blocks);
  [[nodiscard]] CacheFigures figures() const noexcept;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace headrace
