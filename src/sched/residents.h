#pragma once

#include <set>
#include <vector>

#include "kv/cache_manager.h"
#include "sched/cost_model.h"
#include "sched/queues.h"
#include "sched/scheduler_config.h"

namespace headrace {

/// The running sequences, which hold the cache's blocks: who may start, and who must give way when blocks are short.
/// The youngest of the lowest priority gives way first, and only to sequences before it: the oldest of the highest
/// priority always gets what it needs, so work always ends.
class Residents {
 public:
  Residents(const SchedulerConfig& config, CacheManager& cache, Queues& queues)
      : config_(config), cache_(cache), queues_(queues) {}

  /// The sequence runs from now on if the rest of its prompt fits, those of the prompts that run, and some growth of
  /// all: starting what has to be preempted soon helps nobody. Alone, it always starts.
  [[nodiscard]] bool try_start(Sequence& sequence);
  /// `child`, new, runs with the blocks of `parent`, up to what is computed. false, and no change, without room.
  [[nodiscard]] bool try_fork(const Sequence& parent, Sequence& child);
  /// Blocks for positions below `end`. Where they are short, sequences behind this one are preempted, except those with
  /// a row in `step`, which is being composed. false: not now, and where it is alone it was preempted itself.
  [[nodiscard]] bool grow(Sequence& sequence, int32_t end, uint64_t step);
  /// All it began with is submitted.
  void begin_decoding(Sequence& sequence);
  /// A token was appended to a running sequence.
  void appended(const Sequence& sequence) noexcept {
    decodes_.attended_keys += sequence.decoding ? 1 : 0;
    decodes_.read_keys += sequence.decoding ? 1 : 0;
  }
  /// Takes its blocks; to be followed by a change of state.
  void leave(Sequence& sequence);
  /// All stages have lost their tables and caches.
  void restart();

  /// Moves what stages must be told besides the rows into a plan.
  void tell(StepPlan& plan);

  [[nodiscard]] size_t size() const noexcept { return running_.size(); }
  [[nodiscard]] int64_t preemptions() const noexcept { return preemptions_; }
  /// A step with the decode rows of all sequences that decode.
  [[nodiscard]] const StepLoad& decodes() const noexcept { return decodes_; }

 private:
  struct Before {
    bool operator()(const Sequence* a, const Sequence* b) const noexcept { return a->before(*b); }
  };
  /// The last attempt to start that failed. It is tried again only after something has changed.
  struct Refusal {
    SequenceId sequence{};
    int64_t available = -1;
    uint64_t departures = 0;
  };

  [[nodiscard]] Sequence* choose_victim(const Sequence& taker, uint64_t step) const;
  void preempt(Sequence& sequence);
  [[nodiscard]] bool reserve(Sequence& sequence, int32_t end);
  void enter(Sequence& sequence, int32_t computed);
  [[nodiscard]] int32_t whole_blocks(int32_t tokens) const noexcept;
  /// Where its blocks will soon end that will soon have to reach `end`.
  [[nodiscard]] int32_t with_growth(const Sequence& sequence, int32_t end) const noexcept;
  [[nodiscard]] static int64_t outstanding(const Sequence& sequence) noexcept;

  const SchedulerConfig& config_;
  CacheManager& cache_;
  Queues& queues_;
  std::set<Sequence*, Before> running_;  ///< those that give way first are last
  StepLoad decodes_;
  int64_t promised_ = 0;  ///< tokens that running sequences claim and have no blocks for
  Refusal refusal_;
  uint64_t departures_ = 0;
  int64_t preemptions_ = 0;
  std::vector<SequenceId> retired_;
  std::vector<BlockCopy> copies_;
};

}  // namespace headrace
