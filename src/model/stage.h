#pragma once

#include <memory>
#include <span>
#include <vector>

#include "base/error.h"
#include "model/decoder.h"
#include "step/block_tables.h"

namespace headrace {

struct StageConfig {
  DType kv_dtype = DType::kF16;
  std::vector<int32_t> group_blocks;  ///< blocks in each cache group, and the most that resize_cache takes
  int32_t max_tokens = 512;           ///< tokens in one step
  int32_t max_seq_len = 0;
  bool gather_outputs = false;  ///< only output rows leave the stage: the next one has the output unit alone
};

/// What leaves a stage.
struct StageOutput {
  std::vector<float> activations;  ///< f32 [rows, hidden] for the next stage; empty from a stage with the output unit
  StepResult result;               ///< logits, from a stage with the output unit
};

/// A contiguous range of a model's units with weights and KV slabs: turns (plan, activations) into activations or
/// logits, and knows nothing of requests, prefixes or text. Borrows backend, spec and comm. Threading: one thread.
///
/// With several ranks each has a Stage, all of which run the same plans: rank 0 alone reads activations and has an
/// output.
class Stage {
 public:
  /// `weights` are those of the comm's place.
  Stage(Backend& backend, const ArchSpec& spec, StageWeights weights, const StageConfig& config, Comm& comm);

  /// Runs one step. `activations`: f32 [tokens, hidden] from the stage before; [outputs, hidden] where this stage has
  /// the output unit alone; not read by a stage with the embedding. On an error (a plan that makes no sense or lacks
  /// its base) nothing has changed, unless it is the comm's: then the stage is of no more use.
  [[nodiscard]] Result<std::monostate> run(const StepPlan& plan, std::span<const float> activations, StageOutput& out);

  /// Changes the blocks of a cache group between steps, to at most as many as it began with. Memory of blocks beyond
  /// the new end is given back; no table may still have one of these where it is read.
  void resize_cache(int32_t group, int32_t num_blocks);

  /// As if it were new: no tables, and plans of any epoch.
  void reset() { tables_ = BlockTables(plan_limits(spec_, config_)); }

  /// Of the layers of this stage; for BlockIo.
  [[nodiscard]] const KvSlabs& slabs() const noexcept { return slabs_; }
  [[nodiscard]] const StageWeights& weights() const noexcept { return weights_; }
  /// For another stage in place of this one, which can no longer run.
  [[nodiscard]] StageWeights take_weights() noexcept { return std::move(weights_); }
  [[nodiscard]] int64_t kv_bytes() const noexcept { return slabs_.bytes(); }

 private:
  [[nodiscard]] static PlanLimits plan_limits(const ArchSpec& spec, const StageConfig& config);
  [[nodiscard]] bool output_alone() const noexcept;
  /// Logits of `rows` residual rows at `x` in device memory, appended to the result.
  void project(const float* x, int64_t rows, StepResult& result);
  void gather(const float* x, const int32_t* index, int64_t rows) noexcept;

  Backend& backend_;
  const ArchSpec& spec_;
  StageConfig config_;
  StageWeights weights_;
  std::unique_ptr<Queue> queue_;
  BlockTables tables_;
  KvSlabs slabs_;
  Workspace work_;
  StepInputs inputs_;
  Decoder decoder_;
  LinearRunner output_linear_;
  Comm& comm_;
  DeviceBuffer logits_;       // on a device whose operators do not write host memory
  DeviceBuffer logits_here_;  // this rank's columns, where there are several ranks
};

}  // namespace headrace
