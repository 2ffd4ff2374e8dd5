#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "arch/registry.h"
#include "backend/cpu/tuning.h"
#include "base/isa.h"
#include "model/stage_units.h"
#include "ops/recipe.h"

namespace headrace {

struct StageSite;
struct StageAssembly;
/// Builds the stages of a model, wherever they are. Throws LoadError and Error.
using AssembleStages = std::function<StageAssembly(const StageSite&)>;

enum class BackendKind : uint8_t { kCpu, kFakedev };

/// How an engine that serves many requests at once differs from one that is driven step by step.
struct ServingConfig {
  int64_t kv_cache_bytes = 0;  ///< 0: most of what is free once the weights are packed
  bool prefix_caching = true;
  int32_t max_num_seqs = 256;  ///< sequences computed at once
  /// max_step_tokens is only a bound: the tokens of a step are found by measuring the machine, a fraction of a second.
  bool find_step_tokens = false;
};

struct EngineConfig {
  Isa isa = Isa::kRef;
  Numerics numerics = Numerics::kPortable;
  std::optional<DType> kv_dtype{};  ///< of kKvDTypes; none: choose_kv_dtype
  int threads = 1;
  int32_t max_model_len = 0;  ///< tokens of the longest sequence; 0: the model's own, or less if memory is short
  int32_t max_num_seqs = 1;   ///< sequences of max_model_len tokens that the cache has room for, unless it serves
  std::optional<ServingConfig> serving{};
  int32_t max_step_tokens = 512;
  int32_t max_chunk_tokens = 512;    ///< of one prompt in one step
  int32_t steps_in_flight = 1;       ///< steps that are composed before the first one's result is there
  std::vector<StageUnits> stages{};  ///< how the model is cut; empty: not at all
  BackendKind backend = BackendKind::kCpu;
  CpuTuning tuning{};                                   ///< which of the bit-equal kernels run
  std::function<bool(int64_t step)> fault_injection{};  ///< see FailingExecutor; empty: none
  AssembleStages assemble{};                            ///< empty: assemble_local
};

}  // namespace headrace
