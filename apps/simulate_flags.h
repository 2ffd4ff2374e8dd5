#pragma once

#include <string>
#include <vector>

#include "base/options_command_line.h"
#include "engine/simulation.h"

namespace headrace {

/// What `headrace simulate` is told, in the units of its flags.
struct SimulateSettings {
  int32_t stages = 1;
  std::vector<double> fixed_ms{1};
  std::vector<double> weights_ms{0};
  std::vector<double> token_us{300};
  std::vector<double> tile_us{0};
  std::vector<double> key_ns{100};
  std::vector<double> output_us{0};
  std::vector<double> link_ms{0.1};
  std::vector<double> link_gbit{1};
  double token_bytes = 8192;
  double output_bytes = 4;
  int32_t kv_tokens = 65536;
  std::vector<int32_t> windows{0};
  std::vector<int32_t> window_layers{1};

  int32_t steps_in_flight = 0;
  int32_t max_num_batched_tokens = 512;
  int32_t max_num_seqs = 256;
  double step_target_ms = 0;
  bool enable_prefix_caching = true;
  std::string scheduling = "engine";
  bool measured_costs = true;

  int32_t requests = 512;
  int32_t clients = 0;
  double rate = 0;
  std::string load;
  std::string lengths = "fixed";
  int32_t prompt = 512;
  int32_t output = 128;
  int32_t max_prompt = 1 << 20;
  int32_t shared_prefix = 0;
  bool tell_lengths = false;
  int32_t seed = 1;

  std::string json;
  std::string trace;
};

[[nodiscard]] std::vector<OptionGroup> simulate_flags(SimulateSettings& settings);

/// Throws Error where settings contradict each other.
[[nodiscard]] SimulationConfig simulation_config(const SimulateSettings& settings);

}  // namespace headrace
