#pragma once

#include <memory>
#include <optional>
#include <string>

#include "backend/backend.h"
#include "backend/cpu/tuning.h"
#include "base/compute_pool.h"
#include "base/isa.h"
#include "cluster/node_costs.h"
#include "model/comm.h"
#include "model/stage.h"

namespace headrace::cluster {

/// How a model is computed, the same on every machine of a cluster.
struct ComputeRules {
  Numerics numerics = Numerics::kPortable;
  DType kv_dtype = DType::kF16;
  int32_t max_step_tokens = 512;
  bool operator==(const ComputeRules&) const = default;
};

/// What a stage needs beside its weights.
struct StageRules {
  std::vector<int32_t> group_blocks;
  int32_t max_seq_len = 0;
  bool gather_outputs = false;
  bool operator==(const StageRules&) const = default;
};

[[nodiscard]] StageConfig stage_config(const ComputeRules& compute, const StageRules& stage);

/// A worker's compute threads, device, and the model it has open. What was packed is kept for the next time that the
/// same is asked for. Its functions throw Error(kInvalidArgument) where they come before what they need. Threading: one
/// thread.
class NodeMachine {
 public:
  NodeMachine(Isa isa, int threads, const CpuTuning& tuning);

  [[nodiscard]] Isa isa() const noexcept { return isa_; }
  [[nodiscard]] int threads() const noexcept { return pool_.threads(); }
  /// Takes over `files`, of the model with that hash, whose tensors may be missing still; what was packed of another
  /// model or by other rules is dropped.
  void open(ModelFiles files, std::string model_hash, const ComputeRules& rules);
  [[nodiscard]] NodeCosts probe();
  /// Whether the weights of `units` of that model are packed, by any rules that it was opened with last.
  [[nodiscard]] bool has_packed(const std::string& model_hash, const StageUnits& units) const noexcept;
  /// Packs the weights of `units`, which must be in the files, unless they are packed already. Their bytes.
  int64_t load(const StageUnits& units, const LoadProgress& progress);
  /// Bytes of the KV cache of what load() packed.
  [[nodiscard]] int64_t kv_bytes(const StageRules& rules) const;
  /// A stage with what load() packed; once, until it is given back.
  [[nodiscard]] std::unique_ptr<Stage> make_stage(const StageRules& rules);
  void give_back(std::unique_ptr<Stage> stage) { stage_ = std::move(stage); }

  [[nodiscard]] const ArchSpec& spec() const { return model().spec; }

 private:
  struct Model {
    ModelFiles files;
    std::string hash;
    ComputeRules rules;
    ArchSpec spec;
  };

  [[nodiscard]] const Model& model() const;
  /// Of what is packed; null: nothing is.
  [[nodiscard]] const StageUnits* packed_units() const noexcept;

  Isa isa_;
  ComputePool pool_;
  std::unique_ptr<Backend> backend_;
  SingleRank comm_;
  std::unique_ptr<Model> model_;
  std::optional<StageWeights> weights_;  // packed, not in a stage yet
  std::unique_ptr<Stage> stage_;         // packed, of an earlier pipeline
  StageRules stage_rules_;               // of stage_
};

}  // namespace headrace::cluster
