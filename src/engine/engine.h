#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "arch/registry.h"
#include "backend/backend.h"
#include "backend/cpu/tuning.h"
#include "base/compute_pool.h"
#include "engine/cache_plan.h"
#include "engine/steady_clock.h"
#include "kv/cache_manager.h"
#include "model/comm.h"
#include "model/stage_weights.h"
#include "sched/executor.h"
#include "sched/scheduler.h"

namespace headrace {

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
};

/// "f32", "f16", "bf16", "int8": the names of kKvDTypes on command lines.
[[nodiscard]] std::string_view kv_dtype_name(DType dtype) noexcept;
[[nodiscard]] std::optional<DType> parse_kv_dtype(std::string_view name) noexcept;

/// KV cache type of a model for which none is asked: f32 where results must be exact or the weights themselves are f32,
/// else f16.
[[nodiscard]] DType choose_kv_dtype(Numerics numerics, const ModelFiles& files, const ArchSpec& spec);

/// A model on this machine: stages, executor and scheduler, driven one step at a time. Threading: one thread.
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
  /// Once the weights are packed.
  [[nodiscard]] CachePlan size_cache(const EngineConfig& config) const;
  void build_scheduler(const EngineConfig& config, const std::vector<int32_t>& group_blocks);
  [[nodiscard]] SchedulerConfig scheduler_config(const EngineConfig& config) const;
  void build_stages(const ModelFiles& files, const EngineConfig& config, const LoadProgress& progress);

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
