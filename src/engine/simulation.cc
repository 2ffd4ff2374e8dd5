#include "engine/simulation.h"

#include <algorithm>
#include <map>
#include <memory>

#include "base/error.h"
#include "engine/simulated_model.h"
#include "engine/simulated_scheduling.h"

namespace headrace {
namespace {

CacheConfig cache_config(const SimulationConfig& config) {
  CacheConfig cache{.groups = {},
                    .block_tokens = config.machine.block_tokens,
                    .prefix_caching = config.prefix_caching && config.balanced};
  for (const SimulatedGroup& group : config.machine.groups) {
    cache.groups.push_back({.num_blocks = group.num_blocks, .window = group.window});
  }
  return cache;
}

SchedulerConfig scheduler_config(const SimulationConfig& config) {
  SchedulerConfig scheduler = config.scheduler;
  scheduler.num_groups = static_cast<int32_t>(config.machine.groups.size());
  scheduler.block_tokens = config.machine.block_tokens;
  return scheduler;
}

class Simulation {
 public:
  explicit Simulation(const SimulationConfig& config)
      : config_(config),
        executor_(config.machine, clock_),
        cache_(cache_config(config)),
        scheduling_(config.balanced ? engine_scheduling(scheduler_config(config), cache_, clock_)
                                    : unbalanced_scheduling(scheduler_config(config), cache_)),
        times_(config.load.size()) {}

  SimulationResult run() {
    for (int32_t i = 0; i < config_.clients; ++i) start_next(0);
    while (true) {
      while (executor_.next_result_at() && *executor_.next_result_at() <= clock_.now()) receive();
      while (config_.clients == 0 && next_ < config_.load.size() && config_.load[next_].arrival <= clock_.now()) {
        start_next(config_.load[next_].arrival);
      }
      submit();
      if (active_.empty() && next_ == config_.load.size() && executor_.outstanding() == 0) break;
      wait();
    }
    result_.steps = executor_.times();
    result_.scheduler = scheduling_->figures();
    result_.cache = cache_.figures();
    for (RequestTimes& times : times_) {
      if (!times.tokens.empty()) result_.requests.push_back(std::move(times));
    }
    return std::move(result_);
  }

 private:
  struct Active {
    size_t request = 0;
    SimulatedSequence reference;
    std::vector<TokenId> tokens;  // prompt and answer
    TokenId expected = 0;         // the next one
    size_t end = 0;               // tokens when it is complete
  };

  TokenId prompt_token(size_t request, int32_t position) const {
    const uint64_t whose = position < config_.shared_prefix_tokens ? 0 : request + 1;
    const uint64_t number = simulated_mix(simulated_mix(config_.seed + whose) + static_cast<uint64_t>(position));
    return static_cast<TokenId>(number % static_cast<uint64_t>(config_.machine.vocab_size));
  }

  void start_next(double arrival) {
    while (next_ < config_.load.size()) {
      const size_t request = next_++;
      if (start(request, arrival)) return;
      ++result_.refused;
    }
  }

  bool start(size_t request, double arrival) {
    const LoadRequest& load = config_.load[request];
    Active active{.request = request,
                  .reference = SimulatedSequence(config_.machine),
                  .tokens = {},
                  .end = static_cast<size_t>(load.prompt_tokens) + static_cast<size_t>(load.output_tokens)};
    for (int32_t i = 0; i < load.prompt_tokens; ++i) {
      active.tokens.push_back(prompt_token(request, i));
      active.expected = active.reference.append(active.tokens.back());
    }
    const SequenceId id{request + 1};
    SequenceSpec spec;
    spec.tokens = active.tokens;
    spec.max_len = static_cast<int32_t>(active.end);
    if (config_.tell_lengths) spec.expected_len = spec.max_len;
    if (!scheduling_->add(id, std::move(spec))) return false;
    times_[request].arrival = arrival;
    times_[request].prompt_tokens = load.prompt_tokens;
    active_.emplace(id, std::move(active));
    return true;
  }

  void submit() {
    while (has_room() && executor_.can_take()) {
      std::optional<StepPlan> plan = scheduling_->compose();
      if (!plan) return;
      executor_.submit(std::move(*plan));
      result_.most_in_flight = std::max(result_.most_in_flight, static_cast<int32_t>(executor_.outstanding()));
    }
  }

  bool has_room() const {
    return executor_.outstanding() < static_cast<size_t>(std::max(1, scheduling_->steps_in_flight_limit()));
  }

  /// Moves the clock to whatever happens next.
  void wait() {
    std::optional<double> next = executor_.next_result_at();
    const auto consider = [&next](double at) { next = next ? std::min(*next, at) : at; };
    if (has_room() && !executor_.can_take()) consider(executor_.takes_at());
    if (config_.clients == 0 && next_ < config_.load.size()) consider(config_.load[next_].arrival);
    if (!next) {
      throw Error(ErrorCode::kInternal, cat("at ", clock_.now(), " s the scheduler has nothing to do, but ",
                                            active_.size(), " requests are not complete"));
    }
    clock_.advance_to(*next);
  }

  void receive() {
    StepResult result;
    if (auto ok = executor_.receive(result); !ok) throw Error(ok.error());
    scheduling_->complete(result);
    for (size_t i = 0; i < result.outputs.size(); ++i) take(result.outputs[i], result.tokens[i]);
  }

  void take(const OutputRow& output, TokenId token) {
    const auto found = active_.find(output.sequence);
    if (found == active_.end()) return;
    Active& active = found->second;
    const auto next = static_cast<size_t>(output.position) + 1;
    check(active, output, token, next < active.tokens.size() ? active.tokens[next] : active.expected);
    if (next != active.tokens.size()) return;  // computed again after a preemption
    times_[active.request].tokens.push_back(clock_.now());
    active.tokens.push_back(token);
    if (active.tokens.size() == active.end) {
      scheduling_->finish(output.sequence);
      active_.erase(found);
      if (config_.clients > 0) start_next(clock_.now());
      return;
    }
    active.expected = active.reference.append(token);
    scheduling_->append(output.sequence, token);
  }

  void check(const Active& active, const OutputRow& output, TokenId token, TokenId expected) {
    ++result_.checked_tokens;
    if (token == expected) return;
    if (result_.wrong_tokens++ > 0) return;
    result_.first_wrong = cat("request ", active.request, ": after position ", output.position, " came token ", token,
                              ", expected ", expected);
  }

  const SimulationConfig& config_;
  VirtualClock clock_;
  SimulatedExecutor executor_;
  CacheManager cache_;
  std::unique_ptr<SimulatedScheduling> scheduling_;
  std::map<SequenceId, Active> active_;
  std::vector<RequestTimes> times_;
  size_t next_ = 0;  // request of the load
  SimulationResult result_;
};

}  // namespace

SimulationResult run_simulation(const SimulationConfig& config) { return Simulation(config).run(); }

std::vector<StageCost> measured_costs(const SimulatedMachine& machine) {
  std::vector<StageCost> costs;
  for (const SimulatedCost& cost : machine.stages) {
    const double per_token = cost.per_token + cost.per_tile / kSimulatedTile;
    costs.push_back({.fixed = cost.fixed + cost.weights,
                     .per_decode_row = per_token + cost.per_output,
                     .per_prompt_token = per_token,
                     .per_attended_key = cost.per_key,
                     .per_read_key = 0});
  }
  return costs;
}

}  // namespace headrace
