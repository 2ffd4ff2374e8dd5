// headrace plan: how a model would be placed on machines, and what that would give.
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

#include "apps/cluster_flags.h"
#include "apps/commands.h"
#include "apps/load_flags.h"
#include "apps/plan_report.h"
#include "arch/registry.h"
#include "base/error.h"
#include "base/options_command_line.h"
#include "engine/engine.h"

namespace headrace {
namespace {

/// Of a sequence, in the run that predicts.
constexpr int32_t kMostTokens = 1 << 20;

struct PlanSettings {
  std::string model, nodes;
  cluster::PredictedLoad load;
  ClusterOptions wishes;
  /// What a server has where it is told nothing.
  cluster::ServingLimits limits{.max_step_tokens = 1024, .max_num_seqs = ServingConfig{}.max_num_seqs};
  std::string kv_cache_dtype = "auto";
  bool json = false;
  std::string svg;
};

std::vector<OptionGroup> plan_flags(PlanSettings& s) {
  constexpr OptionRange kTokens{.min = 1, .max = kMostTokens};
  return {{"Machines",
           {{.name = "nodes",
             .target = &s.nodes,
             .value_name = "FILE",
             .help = "what machines there are, the head first (docs/plan.md)"},
            placement_flag(s.wishes),
            pipeline_layers_flag(s.wishes),
            output_stage_flag(s.wishes),
            wire_dtype_flag(s.wishes)}},
          {"Model",
           {{.name = "max-model-len",
             .target = &s.limits.max_model_len,
             .range = {.min = 0, .max = 1 << 30},
             .help = "tokens of the one sequence for which there must be room; 0: as many as there is room for"},
            {.name = "max-num-batched-tokens",
             .target = &s.limits.max_step_tokens,
             .range = kTokens,
             .help = "tokens in one step"},
            {.name = "max-num-seqs",
             .target = &s.limits.max_num_seqs,
             .range = {.min = 1, .max = 65536},
             .help = "sequences computed at once, each with a block of KV cache where that can be"},
            {.name = "kv-cache-memory-bytes",
             .target = &s.limits.kv_cache_bytes,
             .range = {.min = 0},
             .value_name = "BYTES",
             .default_text = "most of what the weights leave free",
             .help = "memory for keys and values on each node"},
            {.name = "kv-cache-dtype",
             .target = &s.kv_cache_dtype,
             .choices = {"auto", "f32", "f16", "bf16", "int8"},
             .value_name = "TYPE",
             .help = "type of the keys and values kept"}}},
          {"Load",
           {{.name = "clients",
             .target = &s.load.clients,
             .range = {.min = 0, .max = 4096},
             .default_text = "16 for each node",
             .help = "clients that each send their next request when the last one is answered"},
            {.name = "prompt", .target = &s.load.prompt_tokens, .range = kTokens, .help = "tokens of a prompt"},
            {.name = "output", .target = &s.load.output_tokens, .range = kTokens, .help = "tokens of an answer"}}},
          {"Output",
           {{.name = "json", .target = &s.json, .help = "as JSON"},
            {.name = "svg", .target = &s.svg, .value_name = "FILE", .help = "write a picture there"}}}};
}

/// Output tokens a second when a node is lost.
std::optional<double> loss_rate(const PlanFindings& f, const cluster::NodeLoss& loss) {
  if (!loss.rest) return std::nullopt;
  std::vector<cluster::DescribedNode> rest = f.nodes;
  rest.erase(rest.begin() + loss.node);
  try {
    return cluster::predict(f.units, rest, *loss.rest, f.options, f.load).load.output_rate;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kInvalidArgument) throw;
    return std::nullopt;  // the cache that is left is too small for a request of the load
  }
}

PlanFindings find_plan(const PlanSettings& s) {
  if (s.nodes.empty()) {
    throw Error(ErrorCode::kInvalidArgument, "--nodes: give a file that says what machines there are (docs/plan.md)");
  }
  if (s.load.prompt_tokens > kMostTokens - s.load.output_tokens) {
    throw Error(ErrorCode::kInvalidArgument,
                cat("--prompt ", s.load.prompt_tokens, " and --output ", s.load.output_tokens, ": expected at most ",
                    kMostTokens, " tokens together"));
  }
  const ModelFiles files = open_model(s.model);
  const ArchSpec spec = make_arch_spec(files);
  const std::optional<DType> kv_dtype = parse_kv_dtype(s.kv_cache_dtype);
  PlanFindings f{.model = s.model,
                 .units = cluster::model_units(
                     spec, files, kv_dtype ? *kv_dtype : choose_kv_dtype(Numerics::kPortable, files, spec)),
                 .nodes = {},
                 .options = {},
                 .load = s.load,
                 .placement = {},
                 .prediction = {},
                 .losses = {},
                 .loss_rates = {}};
  f.nodes = cluster::read_nodes_file(s.nodes, f.units);
  f.load.clients = s.load.clients_of(f.nodes.size());
  f.options = cluster::placement_options(s.wishes, f.units, f.nodes.size(), s.limits, f.load);
  std::vector<cluster::NodeOffer> offers;
  for (const cluster::DescribedNode& node : f.nodes) offers.push_back(node.offer);
  f.placement = cluster::place(f.units, offers, f.options);
  f.losses = cluster::losses(f.units, offers, f.options);
  f.prediction = cluster::predict(f.units, f.nodes, f.placement, f.options, f.load);
  for (const cluster::NodeLoss& loss : f.losses) f.loss_rates.push_back(loss_rate(f, loss));
  return f;
}

}  // namespace

int command_plan(std::span<const std::string> arguments) {
  PlanSettings settings;
  const CommandLine command(
      "headrace plan",
      "Says how a model would be placed on machines, which need not exist yet, and what that would "
      "give: memory, step times, tokens per second, traffic, and what the loss of a machine leaves. "
      "Reads only the model's header.",
      {{.name = "MODEL", .target = &settings.model, .help = kModelHelp}}, plan_flags(settings),
      "The file of machines: docs/plan.md");
  if (command.parse(arguments) == CommandLine::Outcome::kHelp) {
    std::fputs(command.help().c_str(), stdout);
    return 0;
  }
  const PlanFindings findings = find_plan(settings);
  if (!settings.svg.empty()) {
    std::ofstream out(settings.svg, std::ios::binary | std::ios::trunc);
    out << plan_svg(findings);
    out.close();
    if (!out) throw Error(ErrorCode::kInvalidArgument, cat(printable(settings.svg), ": cannot be written"));
  }
  const std::string text =
      settings.json ? plan_json(findings).dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n"
                    : plan_text(findings);
  std::fputs(text.c_str(), stdout);
  return 0;
}

}  // namespace headrace
