#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "kv/block_pool.h"
#include "step/step_plan.h"

namespace headrace {

struct ComposerConfig {
  std::vector<int32_t> group_blocks;  ///< blocks in each cache group
  int32_t block_tokens = 16;
  int32_t max_step_tokens = 512;   ///< tokens in one step
  int32_t max_chunk_tokens = 512;  ///< tokens of one sequence in one step
};

/// Makes steps of whatever tokens the sequences have that were not computed yet, first come first served.
/// Threading: the scheduler's thread only.
class Composer {
 public:
  explicit Composer(ComposerConfig config);

  /// A new sequence of `tokens` that may grow to `max_len` tokens; outputs are returned for positions from
  /// `output_from` on. nullopt, and no change, where the cache has no room for max_len.
  [[nodiscard]] std::optional<SequenceId> add(std::vector<TokenId> tokens, int32_t max_len, int32_t output_from);
  /// One more token; the sequence must have room.
  void append(SequenceId sequence, TokenId token);
  /// Gives the sequence's blocks back. Steps that hold it may still be in flight: stages run steps in order, so a block
  /// may be used again by a later one.
  void finish(SequenceId sequence);

  /// The next step; nullopt when no sequence has tokens to compute.
  [[nodiscard]] std::optional<StepPlan> compose();
  /// Blocks that are free in a group.
  [[nodiscard]] int32_t free_blocks(int32_t group) const noexcept { return pools_[static_cast<size_t>(group)].free(); }

 private:
  struct Sequence {
    std::vector<TokenId> tokens;
    std::vector<std::vector<BlockId>> blocks;  // of each group
    int32_t max_len = 0;
    int32_t output_from = 0;
    int32_t computed = 0;   // tokens that are in a step already
    int32_t announced = 0;  // blocks that stages know of, the same in each group
  };
  void add_row(StepPlan& plan, SequenceId id, Sequence& sequence, int32_t budget);

  ComposerConfig config_;
  std::vector<BlockPool> pools_;
  std::map<SequenceId, Sequence> sequences_;  // ids rise, so this is the order of arrival
  std::vector<SequenceId> retired_;
  uint64_t next_sequence_ = 1;
  uint64_t next_step_ = 1;
};

}  // namespace headrace
