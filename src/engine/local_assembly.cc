#include <utility>

#include "base/system_memory.h"
#include "engine/local_executor.h"
#include "engine/stage_assembly.h"

namespace headrace {

CachePlan size_cache(const StageSite& site) {
  const EngineConfig& config = site.config;
  const CacheWish wish{.max_model_len = config.max_model_len,
                       .chunk_tokens = config.max_step_tokens,
                       .num_seqs = config.serving ? 0 : config.max_num_seqs};
  if (config.serving && config.serving->kv_cache_bytes > 0) {
    return plan_cache(site.spec, site.kv_dtype, wish, config.serving->kv_cache_bytes);
  }
  // The rest is left for what else the machine does. Pages are taken only as the cache fills.
  constexpr double kFreeShare = 0.75;
  return plan_cache(site.spec, site.kv_dtype, wish,
                    static_cast<int64_t>(kFreeShare * static_cast<double>(available_memory_bytes())));
}

StageAssembly assemble_local(const StageSite& site) {
  const EngineConfig& config = site.config;
  std::vector<StageUnits> cut = config.stages;
  if (cut.empty()) cut = {whole_model(site.spec)};
  StageAssembly made{
      .executor = nullptr, .cache = {}, .num_stages = cut.size(), .steps_in_flight = config.steps_in_flight};
  std::vector<StageWeights> weights;
  for (size_t i = 0; i < cut.size(); ++i) {
    const auto part = [&](double share) {
      if (site.progress) site.progress((static_cast<double>(i) + share) / static_cast<double>(cut.size()));
    };
    weights.emplace_back(site.backend, site.pool, site.files, site.spec, config.numerics, cut[i], part);
    made.packed_bytes += weights.back().packed_bytes();
    made.file_bytes += weights.back().file_bytes();
  }
  made.cache = size_cache(site);
  std::vector<std::unique_ptr<Stage>> stages;
  for (size_t i = 0; i < cut.size(); ++i) {
    const bool last_layers = i + 2 == cut.size() && cut[i + 1].num_sublayers() == 0;
    const StageConfig stage_config{.kv_dtype = site.kv_dtype,
                                   .group_blocks = made.cache.group_blocks,
                                   .max_tokens = config.max_step_tokens,
                                   .max_seq_len = made.cache.max_model_len,
                                   .gather_outputs = last_layers};
    stages.push_back(std::make_unique<Stage>(site.backend, site.spec, std::move(weights[i]), stage_config, site.comm));
    made.kv_bytes += stages.back()->kv_bytes();
  }
  made.executor = std::make_unique<LocalExecutor>(std::move(stages), config.steps_in_flight, step_timeline());
  return made;
}

}  // namespace headrace
