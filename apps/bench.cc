// headrace bench: prompt and generation speed by length, rows and threads.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "api/engine_options.h"
#include "apps/bench_engine.h"
#include "apps/bench_machine.h"
#include "apps/bench_run.h"
#include "apps/bench_serve.h"
#include "apps/commands.h"
#include "apps/load_flags.h"
#include "base/error.h"
#include "base/options_command_line.h"

namespace headrace {
namespace {

struct BenchSettings {
  std::string model;
  std::vector<int32_t> prompts{512};
  std::vector<int32_t> generate{64};
  std::vector<int32_t> depths{0};
  std::vector<int32_t> rows{1};
  std::vector<int32_t> threads;
  int32_t repetitions = 5;
  std::string output = "md";
  LoadOptions load;
};

struct BenchResult {
  BenchCase bench;
  int threads = 0;
  std::vector<double> rates;
};

CommandLine bench_command_line(BenchSettings& s) {
  std::vector<Option> loading;
  for (const Option& option : load_flags(s.load)) {
    if (option.name == "isa" || option.name == "numerics" || option.name == "kv-cache-dtype") loading.push_back(option);
  }
  return CommandLine(
      "headrace bench",
      "Measures tokens per second. As in llama-bench: ppN reads a prompt of N tokens, tgN generates N tokens one by "
      "one; the first run of each is not counted. `headrace bench machine` measures what the machine can do at best, "
      "`headrace bench engine` many "
      "requests at once, `headrace bench serve` a server.",
      {{.name = "MODEL", .target = &s.model, .help = kModelHelp}},
      {{"What (each combination is measured)",
        {{.name = "prompt",
          .letter = 'p',
          .target = &s.prompts,
          .range = {.min = 0, .max = 1 << 24},
          .help = "prompt lengths in tokens; 0: none"},
         {.name = "generate",
          .letter = 'n',
          .target = &s.generate,
          .range = {.min = 0, .max = 1 << 24},
          .help = "tokens to generate; 0: none"},
         {.name = "depth",
          .letter = 'd',
          .target = &s.depths,
          .range = {.min = 0, .max = 1 << 24},
          .help = "tokens of context before those that are generated"},
         {.name = "rows", .target = &s.rows, .range = {.min = 1, .max = 4096}, .help = "sequences side by side"},
         {.name = "threads",
          .letter = 't',
          .target = &s.threads,
          .range = {.min = 1, .max = 1024},
          .default_text = "one for each usable CPU",
          .help = "compute threads"}}},
       {"How",
        {{.name = "repetitions",
          .letter = 'r',
          .target = &s.repetitions,
          .range = {.min = 1, .max = 1000},
          .help = "runs of each; the median counts"},
         {.name = "output",
          .letter = 'o',
          .target = &s.output,
          .choices = {"md", "json"},
          .value_name = "FORMAT",
          .help = "a Markdown table, or JSON with every run"}}},
       {"Loading", loading}});
}

std::vector<BenchCase> bench_cases(const BenchSettings& s) {
  std::vector<BenchCase> cases;
  for (const int32_t rows : s.rows) {
    for (const int32_t n : s.prompts) {
      if (n > 0) cases.push_back({BenchCase::Kind::kPrompt, n, rows, 0});
    }
    for (const int32_t n : s.generate) {
      for (const int32_t depth : s.depths) {
        if (n > 0) cases.push_back({BenchCase::Kind::kGenerate, n, rows, depth});
      }
    }
  }
  if (cases.empty()) throw Error(ErrorCode::kInvalidArgument, "nothing to measure: -p and -n are both 0");
  return cases;
}

EngineConfig bench_config(const BenchSettings& s, const std::vector<BenchCase>& cases, int threads) {
  EngineConfig config = engine_config(s.load);
  config.threads = threads;
  for (const BenchCase& bench : cases) {
    const int32_t length = bench_length(bench, s.repetitions);
    config.max_model_len = std::max(config.max_model_len, length);
    config.max_num_seqs = std::max(config.max_num_seqs, bench.rows);
  }
  config.max_step_tokens = std::max(config.max_step_tokens, config.max_num_seqs);
  return config;
}

double spread(const std::vector<double>& rates) {
  const auto [least, most] = std::ranges::minmax(rates);
  return 100 * (most - least) / median(rates);
}

void print_markdown_head(const Engine& engine, const BenchSettings& s, const EngineConfig& config) {
  fmt::print("{}; {}, {} usable CPUs\n\n", version_text(), cpu_model_name(), usable_cpus());
  fmt::print("{}: {}, {:.2f} MB in the file, {:.2f} MB packed; numerics {}, KV {}, isa {}; median of {} runs\n\n",
             s.model, engine.spec().name, static_cast<double>(engine.file_bytes()) / 1e6,
             static_cast<double>(engine.packed_bytes()) / 1e6, numerics_name(config.numerics),
             kv_dtype_name(engine.kv_dtype()), isa_name(config.isa), s.repetitions);
  fmt::print("| threads | rows | test | tok/s | (max-min)/median |\n|---:|---:|---|---:|---:|\n");
}

void print_markdown_row(const BenchResult& r) {
  fmt::print("| {} | {} | {} | {:.2f} | {:.1f} % |\n", r.threads, r.bench.rows, bench_name(r.bench), median(r.rates),
             spread(r.rates));
  std::fflush(stdout);
}

nlohmann::ordered_json json_of(const Engine& engine, const BenchSettings& s, const EngineConfig& config,
                               const std::vector<BenchResult>& results) {
  nlohmann::ordered_json json{{"build", version_text()},
                              {"cpu", cpu_model_name()},
                              {"usable_cpus", usable_cpus()},
                              {"model", s.model},
                              {"architecture", engine.spec().name},
                              {"file_bytes", engine.file_bytes()},
                              {"packed_bytes", engine.packed_bytes()},
                              {"numerics", numerics_name(config.numerics)},
                              {"kv_cache_dtype", kv_dtype_name(engine.kv_dtype())},
                              {"isa", isa_name(config.isa)},
                              {"results", nlohmann::ordered_json::array()}};
  for (const BenchResult& r : results) {
    const auto [least, most] = std::ranges::minmax(r.rates);
    json["results"].push_back({{"test", bench_name(r.bench)},
                               {"threads", r.threads},
                               {"rows", r.bench.rows},
                               {"depth", r.bench.depth},
                               {"tokens_per_second", median(r.rates)},
                               {"min", least},
                               {"max", most},
                               {"runs", r.rates}});
  }
  return json;
}

}  // namespace

int command_bench(std::span<const std::string> arguments) {
  if (!arguments.empty() && arguments[0] == "machine") return command_bench_machine(arguments.subspan(1));
  if (!arguments.empty() && arguments[0] == "engine") return command_bench_engine(arguments.subspan(1));
  if (!arguments.empty() && arguments[0] == "serve") return command_bench_serve(arguments.subspan(1));
  if (!arguments.empty() && arguments[0] == "diff") return command_bench_diff(arguments.subspan(1));
  BenchSettings s;
  const CommandLine command = bench_command_line(s);
  if (command.parse(arguments) == CommandLine::Outcome::kHelp) {
    std::fputs(command.help().c_str(), stdout);
    return 0;
  }
  const std::vector<BenchCase> cases = bench_cases(s);
  if (s.threads.empty()) s.threads = {usable_cpus()};
  const bool markdown = s.output == "md";
  const ModelFiles files = open_model(s.model);
  std::vector<BenchResult> results;
  nlohmann::ordered_json json;
  for (size_t i = 0; i < s.threads.size(); ++i) {
    const EngineConfig config = bench_config(s, cases, s.threads[i]);
    auto progress = show_loading(s.model, s.load);
    Engine engine(files, config, s.load.on_progress);
    progress.reset();
    if (markdown && i == 0) print_markdown_head(engine, s, config);
    for (const BenchCase& bench : cases) {
      results.push_back({bench, s.threads[i], run_bench(engine, bench, s.repetitions)});
      if (markdown) print_markdown_row(results.back());
    }
    json = json_of(engine, s, config, results);
  }
  if (!markdown) fmt::print("{}\n", json.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
  return 0;
}

}  // namespace headrace
