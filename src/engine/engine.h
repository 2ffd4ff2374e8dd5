#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "backend/backend.h"
#include "base/compute_pool.h"
#include "engine/engine_config.h"
#include "engine/stage_assembly.h"
#include "engine/steady_clock.h"
#include "kv/cache_manager.h"
#include "model/comm.h"
#include "sched/scheduler.h"

namespace headrace {

/// "f32", "f16", "bf16", "int8": the names of kKvDTypes on command lines.
[[nodiscard]] std::string_view kv_dtype_name(DType dtype) noexcept;
[[nodiscard]] std::optional<DType> parse_kv_dtype(std::string_view name) noexcept;

/// KV cache type of a model for which none is asked: f32 where results must be exact or the weights themselves are f32,
/// else f16.
[[nodiscard]] DType choose_kv_dtype(Numerics numerics, const ModelFiles& files, const ArchSpec& spec);

/// A model: stages (here, or where config.assemble puts them), executor and scheduler, driven one step at a time.
/// Threading: one thread.
class Engine {
 public:
  /// Packs the weights of `files`, which may be closed afterwards. Throws LoadError and Error.
  Engine(const ModelFiles& files, const EngineConfig& config, const LoadProgress& progress = {});
  ~Engine();

  [[nodiscard]] const ArchSpec& spec() const noexcept { return spec_; }
  [[nodiscard]] const Backend& backend() const noexcept { return *backend_; }
  [[nodiscard]] int32_t max_model_len() const noexcept { return max_model_len_; }
  [[nodiscard]] int64_t packed_bytes() const noexcept { return packed_bytes_; }
  [[nodiscard]] int64_t file_bytes() const noexcept { return file_bytes_; }
  [[nodiscard]] int64_t kv_bytes() const noexcept { return kv_bytes_; }
  [[nodiscard]] DType kv_dtype() const noexcept { return kv_dtype_; }
  /// Tokens of one sequence that the cache has room for.
  [[nodiscard]] int64_t kv_tokens() const noexcept { return kv_tokens_; }

  /// Throws ParameterError for a prompt without tokens, or with one outside the vocabulary.
  void check_prompt(std::span<const TokenId> tokens) const;
  /// A sequence of `tokens` (not empty, each in the vocabulary) that may grow to `max_len` <= max_model_len() tokens;
  /// logits come back for positions from `output_from` on. nullopt when it could not fit into the cache. Throws
  /// Error(kInvalidArgument).
  [[nodiscard]] std::optional<SequenceId> start(std::vector<TokenId> tokens, int32_t max_len, int32_t output_from);
  void append(SequenceId sequence, TokenId token) { scheduler_->append(sequence, token); }
  void finish(SequenceId sequence) { scheduler_->finish(sequence); }
  /// Runs one step of whatever is to be computed: its logits, valid until the next step; nullptr when there is nothing
  /// to do.
  [[nodiscard]] const StepResult* step();

  /// For a loop of its own, in place of the five functions above.
  [[nodiscard]] Scheduler& scheduler() noexcept { return *scheduler_; }
  [[nodiscard]] Executor& executor() noexcept { return *executor_; }
  [[nodiscard]] const CacheManager& cache() const noexcept { return *cache_; }
  [[nodiscard]] const Clock& clock() const noexcept { return clock_; }
  /// Idle whenever no step runs.
  [[nodiscard]] ComputePool& pool() noexcept { return pool_; }
  /// After a step that failed, with none outstanding: sequences are computed again from their tokens.
  void restart();

 private:
  void build_backend(const EngineConfig& config);
  void build_scheduler(const EngineConfig& config, const StageAssembly& stages);
  [[nodiscard]] SchedulerConfig scheduler_config(const EngineConfig& config, const StageAssembly& stages) const;

  ArchSpec spec_;
  DType kv_dtype_;
  ComputePool pool_;
  SingleRank comm_;
  std::unique_ptr<Backend> backend_;
  int32_t max_model_len_ = 0;
  int64_t packed_bytes_ = 0;
  int64_t file_bytes_ = 0;
  int64_t kv_bytes_ = 0;
  int64_t kv_tokens_ = 0;
  EpochId epoch_{};
  std::unique_ptr<Executor> executor_;
  SteadyClock clock_;
  std::unique_ptr<CacheManager> cache_;
  std::unique_ptr<Scheduler> scheduler_;
  uint64_t next_sequence_ = 1;
  StepResult result_;
};

}  // namespace headrace
