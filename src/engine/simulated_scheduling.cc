#include "engine/simulated_scheduling.h"

namespace headrace {
namespace {

class EngineScheduling final : public SimulatedScheduling {
 public:
  EngineScheduling(const SchedulerConfig& config, CacheManager& cache, const Clock& clock)
      : scheduler_(config, cache, clock) {}
  bool add(SequenceId sequence, SequenceSpec spec) override {
    return scheduler_.add(sequence, std::move(spec)) == Admit::kYes;
  }
  void append(SequenceId sequence, TokenId token) override { scheduler_.append(sequence, token); }
  void finish(SequenceId sequence) override { scheduler_.finish(sequence); }
  std::optional<StepPlan> compose() override { return scheduler_.compose(); }
  void complete(const StepResult& result) override { scheduler_.complete(result); }
  int32_t steps_in_flight_limit() const override { return scheduler_.steps_in_flight_limit(); }
  SchedulerFigures figures() const override { return scheduler_.figures(); }

 private:
  Scheduler scheduler_;
};

}  // namespace

std::unique_ptr<SimulatedScheduling> engine_scheduling(const SchedulerConfig& config, CacheManager& cache,
                                                       const Clock& clock) {
  return std::make_unique<EngineScheduling>(config, cache, clock);
}

}  // namespace headrace
