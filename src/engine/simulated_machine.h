#pragma once

#include <cstdint>
#include <vector>

#include "step/block_tables.h"

namespace headrace {

/// Kernels compute the tokens of a step in tiles of so many, as AMX does; a tile that is not full takes as long.
constexpr int64_t kSimulatedTile = 16;

/// What a step costs on a simulated stage, in seconds: fixed + max(weights, per_token * tokens + per_tile * tiles) +
/// per_key * keys + per_output * outputs.
struct SimulatedCost {
  double fixed = 0;       ///< each step
  double weights = 0;     ///< reading all weights once: few tokens wait for it, the work of many hides it
  double per_token = 0;   ///< each token of the step
  double per_tile = 0;    ///< each tile of tokens that is begun
  double per_key = 0;     ///< each pair of a token and a position that it attends to
  double per_output = 0;  ///< each output that the step returns: the output projection
};

/// The way from a stage to the next one, or from the last one back to the head. Transfers take turns in the order of
/// the steps; the latency of several overlaps, and all of it overlaps with the computing of stages.
struct SimulatedLink {
  double latency = 0;           ///< seconds
  double seconds_per_byte = 0;  ///< of the bandwidth
};

struct SimulatedGroup {
  int32_t num_blocks = 0;
  int32_t window = 0;  ///< positions that a token sees, itself included; 0: all
  int32_t layers = 1;  ///< how much the group counts in the keys of a step
};

/// A pipeline of machines: what its steps cost and what its cache holds.
struct SimulatedMachine {
  std::vector<SimulatedCost> stages;
  std::vector<SimulatedLink> links;  ///< as many as stages: the last one leads back to the head
  double token_bytes = 0;            ///< of the activations of a token, between stages
  double output_bytes = 0;           ///< of an output, on the way back
  std::vector<SimulatedGroup> groups;
  int32_t block_tokens = 16;
  int32_t vocab_size = 32000;
  int32_t max_step_tokens = 8192;
  int32_t max_seq_len = 1 << 20;
};

/// Throws Error(kInvalidArgument) where the machine has no stages or groups, or not as many links as stages.
void check_machine(const SimulatedMachine& machine);

[[nodiscard]] PlanLimits plan_limits(const SimulatedMachine& machine);

/// What the costs of a step depend on.
struct StepWork {
  int64_t tokens = 0;
  double keys = 0;  ///< positions attended to, summed over tokens, the mean over layers
  int64_t outputs = 0;
};
[[nodiscard]] StepWork step_work(const SimulatedMachine& machine, const StepPlan& plan);

[[nodiscard]] double simulated_seconds(const SimulatedCost& cost, const StepWork& work) noexcept;

}  // namespace headrace
