// headrace simulate: the engine's scheduler on a simulated pipeline, in virtual time.
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>

#include "apps/commands.h"
#include "apps/simulate_flags.h"
#include "apps/simulate_report.h"
#include "base/error.h"
#include "engine/simulation.h"
#include "files/options_file.h"

namespace headrace {
namespace {

/// A file to write to later: a path that cannot be written is found before the simulation runs.
std::ofstream open_json(const std::string& path) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  if (!out) throw Error(ErrorCode::kInvalidArgument, cat(printable(path), ": cannot be written"));
  return out;
}

void write_json(std::ofstream out, const std::string& path, const nlohmann::ordered_json& json) {
  out << json.dump(1) << '\n';
  out.close();
  if (!out) throw Error(ErrorCode::kUnavailable, cat(printable(path), ": could not be written to the end"));
}

}  // namespace

int command_simulate(std::span<const std::string> arguments) {
  SimulateSettings settings;
  std::string file;
  const std::vector<OptionGroup> groups = simulate_flags(settings);
  const CommandLine command(
      "headrace simulate",
      "Runs a load through the engine's scheduler on a simulated pipeline of machines, in virtual time, and reports "
      "what clients would see. Tokens are made of what the simulated KV cache holds, and checked one by one.",
      {{.name = "FILE",
        .target = &file,
        .required = false,
        .help = "flags from a YAML or JSON file, as in `token_us: [100, 120]`; flags given beside it go first"}},
      groups, "Examples: docs/scaling.md");
  if (command.parse(arguments) == CommandLine::Outcome::kHelp) {
    std::fputs(command.help().c_str(), stdout);
    return 0;
  }
  if (!file.empty()) {
    std::vector<Option> options;
    for (const OptionGroup& group : groups) options.insert(options.end(), group.options.begin(), group.options.end());
    read_options_file(file, options);
    (void)command.parse(arguments);
  }
  const SimulationConfig config = simulation_config(settings);
  std::optional<std::ofstream> json;
  std::optional<TraceWriter> trace;
  if (!settings.json.empty()) json = open_json(settings.json);
  if (!settings.trace.empty()) trace.emplace(settings.trace);
  const SimulationResult result = run_simulation(config);
  std::fputs(simulation_text(config, result).c_str(), stdout);
  if (json) write_json(std::move(*json), settings.json, simulation_json(config, result));
  if (trace) {
    write_timeline(result, *trace);
    trace->close();
  }
  if (result.wrong_tokens > 0) throw Error(ErrorCode::kInternal, result.first_wrong);
  return 0;
}

}  // namespace headrace
