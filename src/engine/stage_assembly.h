#pragma once

#include <memory>

#include "backend/backend.h"
#include "base/compute_pool.h"
#include "engine/cache_plan.h"
#include "engine/engine_config.h"
#include "model/comm.h"
#include "model/stage_weights.h"
#include "sched/executor.h"

namespace headrace {

/// What there is when a model's stages are to be built. All of it but files, config and progress outlives the stages.
struct StageSite {
  const ModelFiles& files;
  const EngineConfig& config;
  const ArchSpec& spec;
  DType kv_dtype;
  Backend& backend;
  ComputePool& pool;
  Comm& comm;
  const LoadProgress& progress;
};

/// A model's stages and what runs them.
struct StageAssembly {
  std::unique_ptr<Executor> executor;
  CachePlan cache;
  size_t num_stages = 1;        ///< that run at the same time, as StepResult::stage_seconds has them
  int32_t steps_in_flight = 1;  ///< 0: found from what they cost
  int64_t packed_bytes = 0;     ///< of the weights on this machine, these three
  int64_t file_bytes = 0;
  int64_t kv_bytes = 0;
};

/// All stages of config.stages in this process, one after the other.
[[nodiscard]] StageAssembly assemble_local(const StageSite& site);

/// The cache that fits into config's bytes, or by default into most of what memory is free now.
[[nodiscard]] CachePlan size_cache(const StageSite& site);

}  // namespace headrace
