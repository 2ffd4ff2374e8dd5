// headrace plan: how a model would be placed on machines, and what that would give.
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

#include "apps/commands.h"
#include "apps/load_flags.h"
#include "apps/plan_report.h"
#include "arch/registry.h"
#include "base/error.h"
#include "base/options_command_line.h"
#include "engine/engine.h"

namespace headrace {
namespace {

struct PlanSettings {
  std::string model, nodes;
  int32_t clients = 32;
  int32_t prompt = 256;
  int32_t output = 128;
  std::string placement = "time";
  std::vector<int32_t> pipeline_layers;
  int32_t max_model_len = 0;
  int32_t max_num_batched_tokens = 512;
  std::string kv_cache_dtype = "auto";
  std::string wire_dtype = "f32";
  bool json = false;
  std::string svg;
};

std::vector<OptionGroup> plan_flags(PlanSettings& s) {
  constexpr OptionRange kTokens{.min = 1, .max = 1 << 20};
  return {
      {"Machines",
       {{.name = "nodes",
         .target = &s.nodes,
         .value_name = "FILE",
         .help = "what machines there are, the head first (docs/plan.md)"},
        {.name = "placement",
         .target = &s.placement,
         .choices = {"time", "kv"},
         .value_name = "FIRST",
         .help = "time: the fastest slowest node, then the most KV cache within 3 % of it; kv: the other way round"},
        {.name = "pipeline-layers",
         .target = &s.pipeline_layers,
         .range = {.min = 0, .max = 65536},
         .default_text = "found",
         .help = "layers of each node, the head first"}}},
      {"Model",
       {{.name = "max-model-len",
         .target = &s.max_model_len,
         .range = {.min = 0, .max = 1 << 30},
         .help = "tokens of the one sequence for which there must be room; 0: as many as there is room for"},
        {.name = "max-num-batched-tokens",
         .target = &s.max_num_batched_tokens,
         .range = kTokens,
         .help = "tokens in one step"},
        {.name = "kv-cache-dtype",
         .target = &s.kv_cache_dtype,
         .choices = {"auto", "f32", "f16", "bf16", "int8"},
         .value_name = "TYPE",
         .help = "type of the keys and values kept"},
        {.name = "wire-dtype",
         .target = &s.wire_dtype,
         .choices = {"f32", "bf16", "f16", "int8"},
         .value_name = "TYPE",
         .help = "type of the activations between nodes"}}},
      {"Load",
       {{.name = "clients",
         .target = &s.clients,
         .range = {.min = 1, .max = 4096},
         .help = "clients that each send their next request when the last one is answered"},
        {.name = "prompt", .target = &s.prompt, .range = kTokens, .help = "tokens of a prompt"},
        {.name = "output", .target = &s.output, .range = kTokens, .help = "tokens of an answer"}}},
      {"Output",
       {{.name = "json", .target = &s.json, .help = "as JSON"},
        {.name = "svg", .target = &s.svg, .value_name = "FILE", .help = "write a picture there"}}}};
}

int64_t wire_bytes(const std::string& dtype) { return dtype == "f32" ? 4 : dtype == "int8" ? 1 : 2; }

PlanFindings find_plan(const PlanSettings& s) {
  if (s.nodes.empty()) {
    throw Error(ErrorCode::kInvalidArgument, "--nodes: give a file that says what machines there are (docs/plan.md)");
  }
  const ModelFiles files = open_model(s.model);
  const ArchSpec spec = make_arch_spec(files);
  const std::optional<DType> kv_dtype = parse_kv_dtype(s.kv_cache_dtype);
  PlanFindings f{.model = s.model,
                 .units = cluster::model_units(
                     spec, files, kv_dtype ? *kv_dtype : choose_kv_dtype(Numerics::kPortable, files, spec)),
                 .nodes = {},
                 .options = {.max_step_tokens = s.max_num_batched_tokens,
                             .max_model_len = s.max_model_len,
                             .token_bytes = spec.hidden * wire_bytes(s.wire_dtype),
                             .prefer_kv = s.placement == "kv",
                             .layers = s.pipeline_layers},
                 .load = {.clients = s.clients, .prompt_tokens = s.prompt, .output_tokens = s.output},
                 .placement = {},
                 .prediction = {},
                 .losses = {}};
  f.nodes = cluster::read_nodes_file(s.nodes, f.units);
  // What a step has when the clients' rows are shared among as many steps as there are nodes: with each token of an
  // answer come its share of the prompt's.
  f.options.output_rows = std::max<int32_t>(1, s.clients / static_cast<int32_t>(f.nodes.size()));
  const double tokens = f.options.output_rows * (1 + static_cast<double>(s.prompt) / s.output);
  f.options.rows = static_cast<int32_t>(std::clamp<double>(tokens, f.options.output_rows, s.max_num_batched_tokens));
  std::vector<cluster::NodeOffer> offers;
  for (const cluster::DescribedNode& node : f.nodes) offers.push_back(node.offer);
  f.placement = cluster::place(f.units, offers, f.options);
  f.losses = cluster::losses(f.units, offers, f.options);
  f.prediction = cluster::predict(f.units, f.nodes, f.placement, f.options, f.load);
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
