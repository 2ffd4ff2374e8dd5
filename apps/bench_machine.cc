// headrace bench machine: what this machine can do at best, beside which figures of kernels are to be read.
#include "apps/bench_machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "apps/commands.h"
#include "apps/load_flags.h"
#include "backend/cpu/limits/machine_limits.h"
#include "base/options_command_line.h"

namespace headrace {
namespace {

struct MachineSettings {
  std::string isa;
  std::vector<int32_t> threads;
  int32_t memory_mib = 1024;
  std::string output = "md";
};

CommandLine machine_command_line(MachineSettings& s) {
  return CommandLine("headrace bench machine",
                     "Measures what bounds kernels here: reading memory and caches, arithmetic in registers for each "
                     "instruction set, the meeting of threads. Takes about 10 seconds.",
                     {},
                     {{"What",
                       {{.name = "threads",
                         .letter = 't',
                         .target = &s.threads,
                         .range = {.min = 1, .max = 1024},
                         .default_text = "1, and one for each usable CPU",
                         .help = "each number is measured"},
                        isa_flag(s.isa),
                        {.name = "memory",
                         .target = &s.memory_mib,
                         .range = {.min = 16, .max = 1 << 20},
                         .value_name = "MIB",
                         .help = "memory that is read: more than the caches hold"},
                        {.name = "output",
                         .letter = 'o',
                         .target = &s.output,
                         .choices = {"md", "json"},
                         .value_name = "FORMAT",
                         .help = "a Markdown table, or JSON"}}}});
}

void print_row(const MachineLimit& limit) {
  fmt::print("| {} | {} | {:.2f} {} | {:.0f} % |\n", limit.name, limit.threads, limit.value, limit.unit,
             100 * limit.spread);
  std::fflush(stdout);
}

}  // namespace

int command_bench_machine(std::span<const std::string> arguments) {
  MachineSettings s;
  const CommandLine command = machine_command_line(s);
  if (command.parse(arguments) == CommandLine::Outcome::kHelp) {
    std::fputs(command.help().c_str(), stdout);
    return 0;
  }
  const Isa isa = choose_isa(s.isa);
  if (s.threads.empty()) s.threads = usable_cpus() == 1 ? std::vector{1} : std::vector{1, usable_cpus()};
  const bool markdown = s.output == "md";
  if (markdown) {
    fmt::print(
        "{}; {}, {} usable CPUs; isa {}\n\n| limit | threads | median of 7 | (max-min)/median "
        "|\n|---|---:|---:|---:|\n",
        version_text(), cpu_model_name(), usable_cpus(), isa_name(isa));
  }
  nlohmann::ordered_json limits = nlohmann::ordered_json::array();
  for (const int threads : s.threads) {
    ComputePool pool(threads);
    (void)measure_machine(pool, isa, int64_t{s.memory_mib} << 20, [&](const MachineLimit& limit) {
      if (markdown) print_row(limit);
      limits.push_back({{"limit", limit.name},
                        {"threads", limit.threads},
                        {"value", limit.value},
                        {"unit", limit.unit},
                        {"spread", limit.spread}});
    });
  }
  if (!markdown) {
    const nlohmann::ordered_json json{{"build", version_text()},
                                      {"cpu", cpu_model_name()},
                                      {"usable_cpus", usable_cpus()},
                                      {"isa", isa_name(isa)},
                                      {"limits", limits}};
    fmt::print("{}\n", json.dump(1));
  }
  return 0;
}

}  // namespace headrace
