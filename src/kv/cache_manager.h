#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/ids.h"
#include "kv/cache_group.h"
#include "kv/prefix_tree.h"
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

/// What the cache holds and what became of it since the start. Blocks are those of all groups; total = free + used +
/// cached.
struct CacheFigures {
  int64_t total_blocks = 0;
  int64_t free_blocks = 0;
  int64_t used_blocks = 0;    ///< of sequences
  int64_t cached_blocks = 0;  ///< of prefixes that no sequence holds: given up when blocks are short
  int64_t used_tokens =
      0;  ///< of the places for tokens in used blocks, those not kept for later; the rest: fragmentation
  int64_t query_tokens = 0;    ///< that open() was asked for
  int64_t hit_tokens = 0;      ///< of these, found
  int64_t evicted_blocks = 0;  ///< cached blocks given up
};

/// The blocks of all sequences and of the prefixes they leave behind, for every cache group. It only decides; stages
/// hold the contents and learn of it by plans. Stages run steps in order, so a block may be shared, freed or used again
/// as soon as the last step that writes it was submitted.
/// A sequence must be known where it is named, and not where it is opened. Every call takes time in proportion to the
/// blocks that it concerns, not to the sequences or prefixes there are (clear_prefixes and resize excepted).
/// Threading: the scheduler's thread only.
/// Invariants: a block is free, cached, or held by sequences; a block that is shared or findable is never written.
class CacheManager {
 public:
  explicit CacheManager(const CacheConfig& config);

  /// A sequence begins with the longest prefix of `tokens` that is cached under `salt`, in whole blocks, at most
  /// tokens.size() - 1 tokens, so that something is left to compute. Returns that number of tokens, which count as
  /// submitted. A hit needs the blocks of full groups, and in window groups those that the next position sees.
  int32_t open(SequenceId sequence, std::span<const TokenId> tokens, uint64_t salt);
  /// Room for the positions below `end`; unused prefixes are given up for it, the least recently used first. false, and
  /// no change, where there are too few blocks. Full groups get room below `expected` too, where that is larger: a
  /// request's length, where it is known, so that it need not be preempted later. Window groups only ever hold what a
  /// step needs.
  [[nodiscard]] bool reserve(SequenceId sequence, int32_t end, int32_t expected = 0);
  /// The positions below `end`, for which there is room, are in submitted steps, with the first `end` of `tokens`:
  /// whole blocks may be found from now on, and window groups give back blocks that no later position sees. `end` never
  /// falls.
  void submitted(SequenceId sequence, std::span<const TokenId> tokens, int32_t end);
  /// `child` begins as the first `length` tokens of `parent`, all of them submitted: whole blocks are shared, the last
  /// partial one is copied by the copies that come back, which belong into the next plan in the order in which they
  /// came back, whatever becomes of parent and child until then. nullopt, and no change, where there is no block for
  /// it, or where a window group has given up what position `length` sees (never at the end of the parent).
  [[nodiscard]] std::optional<std::vector<BlockCopy>> fork(SequenceId parent, SequenceId child, int32_t length);
  /// The sequence is finished or preempted. Its whole blocks can still be found until they are given up.
  void close(SequenceId sequence);

  /// The block table, by position / block_tokens, of all reserved positions (in window groups perhaps fewer than in
  /// full ones). It only grows at its end, except that entries which a window group gave back become block 0: they are
  /// never read, and stages need not learn of it. Valid until the sequence's next change.
  [[nodiscard]] std::span<const BlockId> table(SequenceId sequence, int32_t group) const;
  /// Whether a sequence of that many tokens, computed in chunks of at most `chunk_tokens`, fits when it is alone.
  [[nodiscard]] bool fits(int32_t tokens, int32_t chunk_tokens) const noexcept;
  /// Positions that could be reserved in addition now, were all unused prefixes given up, counted in whole blocks: the
  /// least over the groups.
  [[nodiscard]] int64_t available_tokens() const noexcept;
  /// Forgets all prefixes that no sequence holds, and makes none of the present ones findable, nor what present
  /// sequences add to them.
  void clear_prefixes();
  /// Changes the number of blocks of a group, at least 1; cached ones are given up for it. false, and no change, where
  /// blocks beyond the new end are in use.
  [[nodiscard]] bool resize(int32_t group, int32_t num_blocks);
  [[nodiscard]] CacheFigures figures() const noexcept;

 private:
  struct GroupTable {
    std::vector<BlockId> blocks;
    int32_t first_held = 0;  // those before were given back
  };
  struct Sequence {
    uint64_t salt = 0;
    int32_t submitted = 0;     // positions
    bool findable = false;     // its whole submitted blocks are in the tree
    std::vector<NodeId> path;  // their nodes; a node's blocks may be others, with the same contents
    std::vector<GroupTable> tables;
  };

  [[nodiscard]] Sequence& add(SequenceId id);
  [[nodiscard]] const Sequence& find(SequenceId id) const;
  [[nodiscard]] Sequence& find(SequenceId id);
  [[nodiscard]] std::vector<NodeId> longest_prefix(std::span<const TokenId> tokens, uint64_t salt);
  void make_findable(Sequence& sequence, std::span<const TokenId> tokens);
  /// Gives back what no position from sequence.submitted on sees.
  void drop_unseen(Sequence& sequence);
  /// A block with the contents of block `i` of the sequence: its own or its node's; kNoBlock where both are given up.
  [[nodiscard]] BlockId contents_of(const Sequence& sequence, size_t group, int32_t i);
  void hold_all(std::vector<GroupTable>& tables);
  void drop_all(std::vector<GroupTable>& tables);

  void reserve_nodes();
  [[nodiscard]] int32_t blocks_for(int32_t positions) const noexcept;
  [[nodiscard]] int32_t cached_blocks(const CacheGroup& group) const noexcept;
  [[nodiscard]] int32_t available_blocks(const CacheGroup& group) const noexcept;
  [[nodiscard]] bool is_cached(const CacheGroup& group, BlockId block) const noexcept;
  [[nodiscard]] BlockId take_block(CacheGroup& group);
  /// Gives up the prefix that was used least recently, by one block of each group.
  void evict_node();
  /// Gives up a cached block; its node stays.
  void evict_block(CacheGroup& group, BlockId block);

  int32_t block_tokens_;
  bool prefix_caching_;
  std::vector<CacheGroup> groups_;
  PrefixTree tree_;
  std::unordered_map<SequenceId, Sequence> sequences_;
  int64_t unfilled_tokens_ = 0;  // places in the blocks of sequences that are not submitted yet
  int64_t query_tokens_ = 0;
  int64_t hit_tokens_ = 0;
  int64_t evicted_blocks_ = 0;
};

}  // namespace headrace
