// How long one compose() and what belongs to it takes, with many sequences running and waiting.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <numeric>
#include <vector>

#include "sched/fake_stage.h"
#include "sched/scheduler.h"

namespace headrace {
namespace {

constexpr int32_t kWaiting = 10'000;
constexpr int32_t kSteps = 400;

double micros_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count();
}

/// Plays the executor: each row that asks for an output gets a token.
void answer(const StepPlan& plan, StepResult& result) {
  result.epoch = plan.epoch;
  result.step_id = plan.step_id;
  result.outputs.clear();
  for (const PlanRow& row : plan.rows) {
    if (row.num_outputs > 0) result.outputs.push_back({row.sequence, row.first_pos + row.num_tokens - 1});
  }
}

void measure(int32_t running, int32_t steps_in_flight) {
  FakeClock clock;
  CacheManager cache({.groups = {{.num_blocks = running * 128}}, .block_tokens = 16, .prefix_caching = true});
  Scheduler scheduler({.max_step_tokens = 8192, .max_num_seqs = running, .steps_in_flight = steps_in_flight}, cache,
                      clock);
  for (int32_t i = 0; i < running + kWaiting; ++i) {
    std::vector<TokenId> tokens(200);
    std::iota(tokens.begin(), tokens.end(), i);
    const SequenceSpec spec{.tokens = std::move(tokens), .max_len = 2000, .tenant = static_cast<TenantId>(i % 50)};
    if (scheduler.add(SequenceId{static_cast<uint64_t>(i)}, spec) != Admit::kYes) return;
  }
  std::deque<StepPlan> out;
  std::vector<double> compose;
  std::vector<double> complete;
  StepResult result;
  int64_t rows = 0;
  while (static_cast<int32_t>(compose.size()) < kSteps) {
    const auto composing = std::chrono::steady_clock::now();
    std::optional<StepPlan> plan;
    if (static_cast<int32_t>(out.size()) < steps_in_flight) plan = scheduler.compose();
    const double composed = micros_since(composing);
    if (plan) {
      // Measured once all decode and none starts any more.
      const bool steady = std::ssize(plan->tokens) == std::ssize(plan->rows);
      if (steady) {
        compose.push_back(composed);
        rows += std::ssize(plan->rows);
      }
      out.push_back(std::move(*plan));
      continue;
    }
    answer(out.front(), result);
    out.pop_front();
    const auto completing = std::chrono::steady_clock::now();
    scheduler.complete(result);
    for (const OutputRow& row : result.outputs) scheduler.append(row.sequence, 7);
    complete.push_back(micros_since(completing));
  }
  std::ranges::sort(compose);
  std::ranges::sort(complete);
  const auto at = [](const std::vector<double>& values, double share) {
    return values[static_cast<size_t>(share * static_cast<double>(values.size() - 1))];
  };
  fmt::print("{:8} {:8} {:3} {:10.0f} {:10.1f} {:10.1f} {:10.1f} {:10.1f}\n", running, kWaiting, steps_in_flight,
             static_cast<double>(rows) / kSteps, at(compose, 0.5), at(compose, 0.99), compose.back(),
             at(complete, 0.5));
}

}  // namespace
}  // namespace headrace

int main() {
  fmt::print("{:>8} {:>8} {:>3} {:>10} {:>10} {:>10} {:>10} {:>10}\n", "running", "waiting", "D", "rows/step",
             "compose us", "P99", "most", "complete");
  for (const int running : {100, 1000}) {
    for (const int steps : {1, 4}) headrace::measure(running, steps);
  }
}
