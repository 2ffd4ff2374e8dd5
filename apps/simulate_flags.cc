#include "apps/simulate_flags.h"

#include "base/error.h"

namespace headrace {
namespace {

constexpr int32_t kBlockTokens = 16;
constexpr OptionRange kCost{.min = 0, .max = 1e9};

OptionGroup machine_flags(SimulateSettings& s) {
  return {
      "The machine (costs: one value for all stages, or one for each, with commas)",
      {{.name = "stages", .target = &s.stages, .range = {.min = 1, .max = 64}, .help = "stages of the pipeline"},
       {.name = "fixed-ms", .target = &s.fixed_ms, .range = kCost, .help = "what each step costs"},
       {.name = "weights-ms",
        .target = &s.weights_ms,
        .range = kCost,
        .help = "reading all weights once, which the work of many tokens hides: a step takes the longer of the two"},
       {.name = "token-us", .target = &s.token_us, .range = kCost, .help = "each token of a step"},
       {.name = "tile-us",
        .target = &s.tile_us,
        .range = kCost,
        .help = "each 16 tokens of a step that are begun, as for kernels that compute 16 in the time of one"},
       {.name = "key-ns",
        .target = &s.key_ns,
        .range = kCost,
        .help = "each position that a token attends to, in all layers of the stage"},
       {.name = "output-us",
        .target = &s.output_us,
        .range = kCost,
        .help = "each output of a step, in the last stage where one value is given"},
       {.name = "link-ms",
        .target = &s.link_ms,
        .range = kCost,
        .help = "latency from each stage to the next, and from the last to the head; not used with one stage"},
       {.name = "link-gbit",
        .target = &s.link_gbit,
        .range = {.min = 0, .max = 1e6, .above_min = true},
        .help = "bandwidth of the same, Gbit/s"},
       {.name = "token-bytes",
        .target = &s.token_bytes,
        .range = kCost,
        .help = "activations of a token between stages"},
       {.name = "output-bytes", .target = &s.output_bytes, .range = kCost, .help = "an output, back to the head"},
       {.name = "kv-tokens",
        .target = &s.kv_tokens,
        .range = {.min = kBlockTokens, .max = 1 << 30},
        .help = "tokens that the KV cache holds, in each cache group"},
       {.name = "windows",
        .target = &s.windows,
        .range = {.min = 0, .max = 1 << 24},
        .help = "one for each cache group: positions that a token sees; 0: all"},
       {.name = "window-layers",
        .target = &s.window_layers,
        .range = {.min = 1, .max = 1000},
        .help = "layers of each cache group, which weigh its keys"}}};
}

OptionGroup scheduling_flags(SimulateSettings& s) {
  return {"Scheduling",
          {{.name = "steps-in-flight",
            .target = &s.steps_in_flight,
            .range = {.min = 0, .max = 32},
            .help = "steps in flight; 0: found from costs"},
           {.name = "max-num-batched-tokens",
            .target = &s.max_num_batched_tokens,
            .range = {.min = 1, .max = 1 << 20},
            .help = "tokens in one step"},
           {.name = "max-num-seqs",
            .target = &s.max_num_seqs,
            .range = {.min = 1, .max = 1 << 20},
            .help = "sequences running at once"},
           {.name = "step-target-ms",
            .target = &s.step_target_ms,
            .range = {.min = 0, .max = 1e6},
            .help = "time of a step that has prompts beside other rows; 0: found from costs"},
           {.name = "enable-prefix-caching",
            .target = &s.enable_prefix_caching,
            .help = "keep what finished sequences computed for those that begin alike"},
           {.name = "scheduling",
            .target = &s.scheduling,
            .choices = {"engine", "unbalanced"},
            .value_name = "KIND",
            .help = "engine: its own scheduler; unbalanced, to compare with: as many groups as --steps-in-flight take "
                    "turns, a sequence stays in its group, prompts go first"},
           {.name = "measured-costs",
            .target = &s.measured_costs,
            .help = "the scheduler begins with the machine's costs; off: with those of a small model on a few cores"}}};
}

OptionGroup load_flags_of(SimulateSettings& s) {
  return {
      "The load",
      {{.name = "requests", .target = &s.requests, .range = {.min = 1, .max = 1 << 24}, .help = "requests in all"},
       {.name = "clients",
        .target = &s.clients,
        .range = {.min = 0, .max = 1 << 20},
        .help = "clients that each send their next request when the last one is answered; 0: an open loop"},
       {.name = "rate",
        .target = &s.rate,
        .range = {.min = 0, .max = 1e6},
        .help = "requests a second that arrive with exponential gaps; 0: all at once"},
       {.name = "lengths",
        .target = &s.lengths,
        .choices = {"fixed", "normal", "uneven"},
        .value_name = "KIND",
        .help = "normal: standard deviation 0.3 of the mean; uneven: 0.25, 0.5, 1 and 2.25 times the mean in turn"},
       {.name = "prompt", .target = &s.prompt, .range = {.min = 1, .max = 1 << 20}, .help = "mean prompt, tokens"},
       {.name = "output", .target = &s.output, .range = {.min = 1, .max = 1 << 20}, .help = "mean answer, tokens"},
       {.name = "max-prompt",
        .target = &s.max_prompt,
        .range = {.min = 1, .max = 1 << 20},
        .help = "longest prompt, tokens"},
       {.name = "shared-prefix",
        .target = &s.shared_prefix,
        .range = {.min = 0, .max = 1 << 20},
        .help = "tokens that all prompts begin with"},
       {.name = "load",
        .target = &s.load,
        .value_name = "FILE",
        .help = "a recorded load in place of rate, number and lengths: CSV with columns arrival, prompt, output, or a "
                "JSON array of objects with these keys"},
       {.name = "seed", .target = &s.seed, .range = {.min = 0}, .help = "of arrivals, lengths and tokens"}}};
}

std::vector<double> for_each_stage(const std::vector<double>& values, int32_t stages, std::string_view flag) {
  if (values.size() == 1) return std::vector<double>(static_cast<size_t>(stages), values[0]);
  if (values.size() == static_cast<size_t>(stages)) return values;
  throw Error(ErrorCode::kInvalidArgument,
              cat(flag, ": ", values.size(), " values for ", stages, " stages; expected one, or one for each stage"));
}

SimulatedMachine machine_of(const SimulateSettings& s) {
  SimulatedMachine machine;
  const std::vector<double> fixed = for_each_stage(s.fixed_ms, s.stages, "--fixed-ms");
  const std::vector<double> weights = for_each_stage(s.weights_ms, s.stages, "--weights-ms");
  const std::vector<double> token = for_each_stage(s.token_us, s.stages, "--token-us");
  const std::vector<double> tile = for_each_stage(s.tile_us, s.stages, "--tile-us");
  const std::vector<double> key = for_each_stage(s.key_ns, s.stages, "--key-ns");
  std::vector<double> output = for_each_stage(s.output_us, s.stages, "--output-us");
  const std::vector<double> latency = for_each_stage(s.link_ms, s.stages, "--link-ms");
  const std::vector<double> gbit = for_each_stage(s.link_gbit, s.stages, "--link-gbit");
  if (s.output_us.size() == 1) std::fill(output.begin(), output.end() - 1, 0.0);
  for (size_t i = 0; i < fixed.size(); ++i) {
    machine.stages.push_back({.fixed = fixed[i] * 1e-3,
                              .weights = weights[i] * 1e-3,
                              .per_token = token[i] * 1e-6,
                              .per_tile = tile[i] * 1e-6,
                              .per_key = key[i] * 1e-9,
                              .per_output = output[i] * 1e-6});
    machine.links.push_back({.latency = latency[i] * 1e-3, .seconds_per_byte = 8e-9 / gbit[i]});
  }
  if (s.stages == 1) machine.links[0] = {};
  machine.token_bytes = s.token_bytes;
  machine.output_bytes = s.output_bytes;
  if (s.window_layers.size() != 1 && s.window_layers.size() != s.windows.size()) {
    throw Error(ErrorCode::kInvalidArgument, cat("--window-layers: ", s.window_layers.size(), " values for ",
                                                 s.windows.size(), " windows; expected one, or one for each"));
  }
  for (size_t i = 0; i < s.windows.size(); ++i) {
    machine.groups.push_back({.num_blocks = s.kv_tokens / kBlockTokens,
                              .window = s.windows[i],
                              .layers = s.window_layers.size() == 1 ? s.window_layers[0] : s.window_layers[i]});
  }
  machine.block_tokens = kBlockTokens;
  machine.max_step_tokens = s.max_num_batched_tokens;
  return machine;
}

std::vector<LoadRequest> load_of(const SimulateSettings& s) {
  if (!s.load.empty()) return read_load(s.load);
  const LengthKind kind = s.lengths == "normal"   ? LengthKind::kNormal
                          : s.lengths == "uneven" ? LengthKind::kUneven
                                                  : LengthKind::kFixed;
  return make_load({.requests = s.requests,
                    .rate = s.rate,
                    .lengths = kind,
                    .prompt_tokens = s.prompt,
                    .output_tokens = s.output,
                    .max_prompt_tokens = s.max_prompt,
                    .seed = static_cast<uint64_t>(s.seed)});
}

}  // namespace

std::vector<OptionGroup> simulate_flags(SimulateSettings& s) {
  return {machine_flags(s),
          scheduling_flags(s),
          load_flags_of(s),
          {"Output",
           {{.name = "json", .target = &s.json, .value_name = "FILE", .help = "write the report there as JSON"},
            {.name = "trace",
             .target = &s.trace,
             .value_name = "FILE",
             .help = "write a timeline of stages and links there, for ui.perfetto.dev"}}}};
}

SimulationConfig simulation_config(const SimulateSettings& s) {
  if (s.clients > 0 && s.rate > 0) {
    throw Error(ErrorCode::kInvalidArgument,
                "--clients and --rate: clients send when they are answered, not at a rate");
  }
  SimulationConfig config;
  config.machine = machine_of(s);
  config.scheduler.max_step_tokens = s.max_num_batched_tokens;
  config.scheduler.max_num_seqs = s.max_num_seqs;
  config.scheduler.steps_in_flight = s.steps_in_flight;
  config.scheduler.step_target_seconds = s.step_target_ms * 1e-3;
  config.scheduler.stage_costs = s.measured_costs ? measured_costs(config.machine)
                                                  : std::vector<StageCost>(static_cast<size_t>(s.stages), StageCost{});
  config.prefix_caching = s.enable_prefix_caching;
  config.balanced = s.scheduling == "engine";
  config.load = load_of(s);
  config.clients = s.clients;
  config.shared_prefix_tokens = s.shared_prefix;
  config.tell_lengths = s.tell_lengths;
  config.seed = static_cast<uint64_t>(s.seed);
  return config;
}

}  // namespace headrace
