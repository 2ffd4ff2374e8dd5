#include "apps/load_flags.h"

#include <filesystem>

#include "base/cat.h"

namespace headrace {

Option isa_flag(std::string& isa) {
  return {.name = "isa",
          .target = &isa,
          .choices = {"ref", "avx2", "avx512", "amx"},
          .value_name = "NAME",
          .default_text = "$HEADRACE_ISA, else the best that the machine has",
          .help = "highest instruction set used"};
}

Option threads_flag(int& threads) {
  return {.name = "threads",
          .letter = 't',
          .target = &threads,
          .range = {.min = 0, .max = 1024},
          .default_text = "one for each usable CPU",
          .help = "compute threads; 0: choose"};
}

Option cpu_list_flag(std::string& list) {
  return {.name = "cpu-list",
          .target = &list,
          .value_name = "LIST",
          .default_text = "all that it may use",
          .help = "CPUs to keep to, such as 0-3,8"};
}

std::vector<Option> load_flags(LoadOptions& options) {
  return {
      isa_flag(options.isa),
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
      threads_flag(options.threads),
      {.name = "max-model-len",
       .target = &options.max_model_len,
       .range = {.min = 0},
       .default_text = "the model's own, as far as memory allows",
       .help = "longest sequence, prompt and answer, in tokens"},
  };
}

std::vector<Option> serving_flags(LoadOptions& options) {
  return {
      {.name = "kv-cache-memory-bytes",
       .target = &options.kv_cache_memory_bytes,
       .range = {.min = 0},
       .value_name = "BYTES",
       .default_text = "most of what the weights leave free",
       .help = "memory for the keys and values of all sequences; taken as they fill it"},
      {.name = "enable-prefix-caching",
       .target = &options.prefix_caching,
       .help = "sequences that begin alike share what was computed"},
      {.name = "max-num-seqs",
       .target = &options.max_num_seqs,
       .range = {.min = 0, .max = 65536},
       .default_text = "256",
       .help = "sequences computed at once; others wait"},
      {.name = "max-num-batched-tokens",
       .target = &options.max_num_batched_tokens,
       .range = {.min = 0, .max = 65536},
       .default_text = "found by measuring the machine",
       .help = "tokens in one step; 0: find them"},
  };
}

std::vector<Option> rank_flags(LoadOptions& options) {
  constexpr int kMostRanks = 64;
  options.tensor_parallel_program = "/proc/self/exe";
  return {
      {.name = "tensor-parallel-size",
       .target = &options.tensor_parallel_size,
       .range = {.min = 1, .max = kMostRanks},
       .value_name = "N",
       .help = "processes on this machine over which each layer, its KV heads and its weights, is divided; they share "
               "--threads"},
      {.name = "tensor-parallel-transport",
       .target = &options.tensor_parallel_transport,
       .choices = {"shm", "tcp"},
       .value_name = "NAME",
       .help = "between them: shared memory, or TCP over the loopback interface"},
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
