// headrace eval: goldens in the formats of tests/data/README.md.
#include <fmt/format.h>

#include <cstdio>

#include "apps/commands.h"
#include "apps/load_flags.h"
#include "base/error.h"
#include "base/options_command_line.h"
#include "engine/golden_suite.h"

namespace headrace {
namespace {

struct EvalSettings {
  std::vector<std::string> models;
  std::vector<std::string> goldens;
  std::vector<std::string> numerics{"exact", "portable", "fastest"};
  std::vector<std::string> isas;
  std::vector<std::string> kv_dtypes{"auto"};
  std::vector<int32_t> threads{0};
  std::vector<int32_t> chunks{0};
  std::vector<int32_t> stages{1};
  bool together = false;
  std::string backend = "cpu";
};

CommandLine eval_command_line(EvalSettings& s) {
  return CommandLine(
      "headrace eval",
      "Compares what models compute here with results of an independent implementation (goldens), one line for each "
      "golden and setup: name, numerics, instruction set, largest difference over the logits' standard deviation, best "
      "tokens that agree, verdict.",
      {{.name = "MODEL",
        .target = &s.models,
        .required = false,
        .help =
            "a model with a golden in its folder or beside its .gguf; with --golden: the model of goldens that come "
            "without one"}},
      {{"What",
        {{.name = "golden",
          .target = &s.goldens,
          .value_name = "PATH...",
          .help = "a .gguf with NAME.golden.* beside it, a folder with golden.json, a quant, tokenizers or templates "
                  "folder, or a folder of these",
          .many = true}}},
       {"How (each combination is tried)",
        {{.name = "numerics",
          .target = &s.numerics,
          .choices = {"exact", "portable", "fastest"},
          .value_name = "LIST",
          .help = "how numbers are made"},
         {.name = "isa",
          .target = &s.isas,
          .choices = {"ref", "avx2", "avx512", "amx", "all"},
          .value_name = "LIST",
          .default_text = "$HEADRACE_ISA, else the best that the machine has",
          .help = "highest instruction set used; all: every one that the machine has"},
         {.name = "kv-cache-dtype",
          .target = &s.kv_dtypes,
          .choices = {"auto", "f32", "f16", "bf16", "int8"},
          .value_name = "LIST",
          .help = "type of the keys and values kept"},
         {.name = "threads",
          .letter = 't',
          .target = &s.threads,
          .range = {.min = 0, .max = 1024},
          .help = "compute threads; 0: one for each usable CPU"},
         {.name = "chunks",
          .target = &s.chunks,
          .range = {.min = 0, .max = 512},
          .help = "prompt tokens in one step; 0: as many as fit"},
         {.name = "stages",
          .target = &s.stages,
          .range = {.min = 1, .max = 10000},
          .help = "parts that the model is cut into, at most one a layer"},
         {.name = "together", .target = &s.together, .help = "all prompts of a golden side by side in the same steps"},
         {.name = "backend",
          .target = &s.backend,
          .choices = {"cpu", "fakedev"},
          .value_name = "NAME",
          .help = "fakedev is a device for tests, whose memory the host cannot read"}}}},
      "Setups with the same numerics and KV cache must give the same bits, or the later one fails.\n"
      "Exit code: 0 all passed, 1 one failed, 2 none failed but one could not be tried.");
}

std::vector<Isa> chosen_isas(const std::vector<std::string>& names) {
  std::vector<Isa> isas;
  for (const std::string& name : names) {
    if (name != "all") {
      isas.push_back(choose_isa(name));
      continue;
    }
    for (const Isa isa : kAllIsas) {
      if (machine_has(isa)) isas.push_back(isa);
    }
  }
  if (isas.empty()) isas.push_back(choose_isa({}));
  return isas;
}

std::vector<GoldenSetup> chosen_setups(const EvalSettings& s) {
  std::vector<GoldenSetup> setups;
  for (const std::string& numerics : s.numerics) {
    for (const std::string& kv_dtype : s.kv_dtypes) {
      for (const Isa isa : chosen_isas(s.isas)) {
        for (const int32_t threads : s.threads) {
          for (const int32_t chunk : s.chunks) {
            for (const int32_t stages : s.stages) {
              setups.push_back({.numerics = *parse_numerics(numerics),
                                .isa = isa,
                                .threads = threads > 0 ? threads : usable_cpus(),
                                .chunk_tokens = chunk,
                                .stages = stages,
                                .together = s.together,
                                .kv_dtype = parse_kv_dtype(kv_dtype),
                                .backend = s.backend == "fakedev" ? BackendKind::kFakedev : BackendKind::kCpu});
            }
          }
        }
      }
    }
  }
  return setups;
}

void print_outcome(const GoldenOutcome& outcome) {
  std::string line = outcome.name;
  if (!outcome.setup.empty()) line += "  " + outcome.setup;
  if (outcome.difference) line += fmt::format("  diff/std {:.2e}", *outcome.difference);
  if (!outcome.detail.empty()) line += "  " + outcome.detail;
  if (!outcome.matches.empty()) line += "  " + outcome.matches;
  line += fmt::format("  {}", verdict_name(outcome.verdict));
  if (!outcome.reason.empty()) line += ": " + outcome.reason;
  fmt::print("{}\n", line);
  std::fflush(stdout);
}

}  // namespace

int command_eval(std::span<const std::string> arguments) {
  EvalSettings s;
  const CommandLine command = eval_command_line(s);
  if (command.parse(arguments) == CommandLine::Outcome::kHelp) {
    std::fputs(command.help().c_str(), stdout);
    return 0;
  }
  if (s.models.empty() && s.goldens.empty()) {
    throw Error(ErrorCode::kInvalidArgument,
                "nothing to compare: name a MODEL or --golden PATH (headrace eval --help)");
  }
  if (!s.goldens.empty() && s.models.size() > 1) {
    throw Error(ErrorCode::kInvalidArgument,
                "with --golden at most one MODEL: the goldens' models are found beside them");
  }
  const std::string model = s.goldens.empty() ? std::string() : s.models.empty() ? std::string() : s.models[0];
  GoldenSuite suite(model, chosen_setups(s), print_outcome);
  for (const std::string& path : s.goldens.empty() ? s.models : s.goldens) {
    for (const GoldenItem& item : find_goldens(path)) suite.run(item);
  }
  fmt::print("{} OK, {} FAILED, {} NOT TRIED\n", suite.ok(), suite.failed(), suite.not_tried());
  return suite.failed() > 0 ? 1 : suite.not_tried() > 0 ? 2 : 0;
}

}  // namespace headrace
