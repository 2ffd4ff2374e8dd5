#include "cluster/rank_worker.h"

#include "backend/cpu/cpu_backend.h"
#include "base/compute_pool.h"
#include "cluster/frame.h"
#include "cluster/rank_orders.h"
#include "cluster/ring_comm.h"
#include "engine/tuning_file.h"
#include "model/stage.h"
#include "step/plan_codec.h"

namespace headrace::cluster {
namespace {

/// A rank's model, built in two parts.
class RankModel {
 public:
  RankModel(RankRing& ring, const RankSetup& setup)
      : rules_(setup.rules),
        pool_(setup.threads),
        backend_(make_cpu_backend(pool_, setup.isa, load_tuning(setup.isa, setup.threads))),
        comm_(*backend_, ring) {
    const ModelFiles files = open_model(setup.path);
    spec_ = make_arch_spec(files);
    check_ranks(spec_, ring.place().ranks);
    weights_.emplace(*backend_, pool_, files, spec_, rules_.numerics, whole_model(spec_), LoadProgress(), nullptr,
                     ring.place());
  }
  void make_stage(const StageRules& rules) {
    stage_.emplace(*backend_, spec_, std::move(*weights_), stage_config(rules_, rules), comm_);
  }

  [[nodiscard]] const ArchSpec& spec() const noexcept { return spec_; }
  [[nodiscard]] RankBytes bytes() const noexcept {
    return {.packed = weights_->packed_bytes(), .file = weights_->file_bytes()};
  }
  [[nodiscard]] Stage& stage() noexcept { return *stage_; }

 private:
  ComputeRules rules_;
  ComputePool pool_;
  std::unique_ptr<Backend> backend_;
  RingComm comm_;
  ArchSpec spec_;
  std::optional<StageWeights> weights_;
  std::optional<Stage> stage_;
};

/// What `part` makes; its failure is reported before it goes on.
template <class Part>
auto or_report(RankRing& ring, const Part& part) {
  try {
    return part();
  } catch (const Error& error) {
    if (!ring.fault()) send_report(ring, error);
    throw;
  } catch (const std::bad_alloc&) {
    const Error error(ErrorCode::kOutOfMemory, "out of memory");
    send_report(ring, error);
    throw error;
  }
}

void run_plans(RankRing& ring, Stage& stage) {
  std::vector<std::byte> order;
  StageOutput output;
  while (ring.take_order(order, static_cast<size_t>(max_payload_bytes(FrameKind::kPlan)))) {
    const Result<StepPlan> plan = decode_plan(order);
    if (!plan) throw plan.error();
    // A plan that makes no sense is one to all ranks: none computes it, and rank 0 tells.
    (void)stage.run(plan.value(), {}, output);
  }
}

}  // namespace

Error run_rank(RankRing& ring) {
  try {
    const RankSetup setup = receive_setup(ring);
    ring.limit(kRankLoadSeconds);
    const auto model = or_report(ring, [&] { return std::make_unique<RankModel>(ring, setup); });
    send_report(ring, model->bytes());
    const StageRules rules = receive_stage_rules(ring, model->spec());
    or_report(ring, [&] { model->make_stage(rules); });
    send_report(ring, RankBytes{});
    ring.limit(kRankSeconds);
    run_plans(ring, model->stage());
    return *ring.fault();
  } catch (const Error& error) {
    return error;
  }
}

}  // namespace headrace::cluster
