#include "apps/load_flags.h"

#include <filesystem>

#include "base/cat.h"

namespace headrace {

std::vector<Option> load_flags(LoadOptions& options) {
  return {
      {.name = "isa",
       .target = &options.isa,
       .choices = {"ref", "avx2", "avx512", "amx"},
       .value_name = "NAME",
       .default_text = "$HEADRACE_ISA, else the best that the machine has",
       .help = "highest instruction set used"},
      {.name = "numerics",
       .target = &options.numerics,
       .choices = {"portable", "fastest", "exact"},
       .value_name = "NAME",
       .help =
           "how numbers are made: portable keeps quantised weights as they are with int8 activations, fastest rounds "
           "them further where that is faster, exact decodes to float32"},
      {.name = "kv-cache-dtype",
       .target = &options.kv_cache_dtype,
       .choices = {"auto", "f32", "f16", "bf16", "int8"},
       .value_name = "TYPE",
       .help = "type of the keys and values kept; auto: f32 where numbers are exact or the weights are f32, else f16"},
      {.name = "threads",
       .letter = 't',
       .target = &options.threads,
       .range = {.min = 0, .max = 1024},
       .default_text = "one for each usable CPU",
       .help = "compute threads; 0: choose"},
      {.name = "max-model-len",
       .target = &options.max_model_len,
       .range = {.min = 0},
       .default_text = "the model's own, as far as memory allows",
       .help = "longest sequence, prompt and answer, in tokens"},
  };
}

std::unique_ptr<ProgressLine> show_loading(const std::string& model, LoadOptions& options) {
  const std::filesystem::path path(model);
  const std::string name = (path.has_filename() ? path : path.parent_path()).filename().string();
  auto line = std::make_unique<ProgressLine>(cat("Loading ", name), 1, ProgressUnit::kShare);
  options.on_progress = [&shown = *line](double share) { shown.update(share); };
  return line;
}

}  // namespace headrace
