#include "engine/step_calibration.h"

#include <algorithm>
#include <utility>

#include "sched/scheduler.h"

namespace headrace {
namespace {

constexpr int32_t kFirstPrompt = 32;
/// Rounds of single tokens after each prompt: the prompts before it decode too.
constexpr int32_t kDecodeRounds = 3;

class Calibration {
 public:
  explicit Calibration(CalibrationRun& run)
      : run_(run), cache_(run.cache), scheduler_(std::move(run.scheduler), cache_, run.clock) {}

  /// False: there is no time or no room for more, or a step failed.
  bool read_prompt(int32_t tokens) {
    if (tokens + kDecodeRounds > run_.max_model_len) return false;
    const SequenceId id{++sequences_};
    SequenceSpec spec{.tokens = std::vector<TokenId>(static_cast<size_t>(tokens), 0), .max_len = run_.max_model_len};
    if (scheduler_.add(id, std::move(spec)) != Admit::kYes) return false;
    for (int32_t round = 0; round <= kDecodeRounds; ++round) {
      if (!step()) return false;
    }
    return run_.clock.now() - begin_ < run_.seconds;
  }
  [[nodiscard]] bool failed() const noexcept { return failed_; }
  [[nodiscard]] const CostModel& costs() const noexcept { return scheduler_.costs(); }

 private:
  bool step() {
    std::optional<StepPlan> plan = scheduler_.compose();
    if (!plan) return false;
    run_.executor.submit(std::move(*plan));
    if (!run_.executor.receive(result_)) {
      failed_ = true;
      return false;
    }
    scheduler_.complete(result_);
    for (const OutputRow& output : result_.outputs) {
      const bool is_whole = std::ssize(scheduler_.tokens(output.sequence)) == run_.max_model_len;
      is_whole ? scheduler_.finish(output.sequence) : scheduler_.append(output.sequence, 0);
    }
    return true;
  }

  CalibrationRun& run_;
  CacheManager cache_;
  Scheduler scheduler_;
  StepResult result_;
  double begin_ = run_.clock.now();
  uint64_t sequences_ = 0;
  bool failed_ = false;
};

}  // namespace

std::vector<StageCost> calibrate_steps(CalibrationRun run) {
  const std::vector<StageCost> start = run.scheduler.stage_costs;
  const int32_t most = run.scheduler.max_step_tokens;
  // Each step is to be as long as its prompt, whatever it costs those that decode.
  run.scheduler.step_target_seconds = std::numeric_limits<double>::infinity();
  run.scheduler.steps_in_flight = 1;
  run.cache.prefix_caching = false;
  run.executor.rehearse(true);
  Calibration calibration(run);
  // The first one twice: weights and buffers are touched for the first time.
  bool goes_on = calibration.read_prompt(std::min(kFirstPrompt, most));
  for (int32_t tokens = kFirstPrompt; goes_on && tokens <= most; tokens *= 2) {
    goes_on = calibration.read_prompt(tokens);
  }
  run.executor.rehearse(false);
  if (calibration.failed()) return start;
  std::vector<StageCost> costs;
  for (size_t i = 0; i < start.size(); ++i) costs.push_back(calibration.costs().stage(i));
  return costs;
}

}  // namespace headrace
