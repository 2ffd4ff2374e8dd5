#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "cluster/rank_process.h"
#include "cluster/ring_comm.h"
#include "engine/local_executor.h"
#include "engine/stage_assembly.h"

namespace headrace::cluster {

/// Ranks of this machine: the ring of rank 0, and the processes of the others (none where they are threads).
struct RankGroup {
  std::unique_ptr<RankRing> ring;
  std::vector<std::unique_ptr<RankProcess>> processes;
};
/// Starts `program` for each further rank. Throws Error.
[[nodiscard]] RankGroup start_ranks(int32_t ranks, RankTransport transport, const std::string& program);

/// Rank 0 of a model whose layers are divided over ranks: has every rank run each plan. A rank that is lost stays lost:
/// steps fail from then on. Threading: as Executor; has_lost_rank() from any thread.
class RankExecutor final : public Executor {
 public:
  /// Loads the model on all ranks; what there is of them goes to `made`. Throws Error.
  RankExecutor(const StageSite& site, RankGroup group, StageAssembly& made);
  ~RankExecutor() override;

  void submit(StepPlan plan) override;
  [[nodiscard]] bool can_take() const override { return local_->can_take(); }
  [[nodiscard]] Result<std::monostate> receive(StepResult& result) override;

  [[nodiscard]] bool has_lost_rank() const noexcept { return group_.ring->is_broken(); }

 private:
  [[nodiscard]] Error explained(const Error& error);

  RankGroup group_;
  RingComm comm_;
  std::unique_ptr<LocalExecutor> local_;
  std::deque<std::vector<std::byte>> orders_;  // the plans that local_ has
};

/// All of the model, with each layer divided over `group`.
[[nodiscard]] StageAssembly assemble_ranks(const StageSite& site, RankGroup group);

}  // namespace headrace::cluster
