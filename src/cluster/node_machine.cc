#include "cluster/node_machine.h"

#include "backend/cpu/cpu_backend.h"
#include "cluster/node_probe.h"

namespace headrace::cluster {

StageConfig stage_config(const ComputeRules& compute, const StageRules& stage) {
  return {.kv_dtype = compute.kv_dtype,
          .group_blocks = stage.group_blocks,
          .max_tokens = compute.max_step_tokens,
          .max_seq_len = stage.max_seq_len,
          .gather_outputs = stage.gather_outputs};
}

NodeMachine::NodeMachine(Isa isa, int threads, const CpuTuning& tuning)
    : isa_(isa), pool_(threads), backend_(make_cpu_backend(pool_, isa, tuning)) {}

void NodeMachine::open(ModelFiles files, std::string model_hash, const ComputeRules& rules) {
  if (model_ && model_->hash == model_hash && model_->rules == rules) {
    model_->files = std::move(files);
    return;
  }
  stage_.reset();
  weights_.reset();
  ArchSpec spec = make_arch_spec(files);
  model_ = std::make_unique<Model>(std::move(files), std::move(model_hash), rules, std::move(spec));
}

const NodeMachine::Model& NodeMachine::model() const {
  if (!model_) throw Error(ErrorCode::kInvalidArgument, "no model is open yet");
  return *model_;
}

const StageUnits* NodeMachine::packed_units() const noexcept {
  if (stage_) return &stage_->weights().units();
  return weights_ ? &weights_->units() : nullptr;
}

bool NodeMachine::has_packed(const std::string& model_hash, const StageUnits& units) const noexcept {
  const StageUnits* const packed = packed_units();
  return packed != nullptr && model_->hash == model_hash && *packed == units;
}

NodeCosts NodeMachine::probe() {
  return probe_node({.files = model().files,
                     .spec = model().spec,
                     .backend = *backend_,
                     .pool = pool_,
                     .comm = comm_,
                     .numerics = model().rules.numerics,
                     .kv_dtype = model().rules.kv_dtype});
}

int64_t NodeMachine::load(const StageUnits& units, const LoadProgress& progress) {
  if (stage_ && stage_->weights().units() == units) return stage_->weights().packed_bytes();
  if (weights_ && weights_->units() == units) return weights_->packed_bytes();
  stage_.reset();
  weights_.reset();
  weights_.emplace(*backend_, pool_, model().files, model().spec, model().rules.numerics, units, progress);
  return weights_->packed_bytes();
}

int64_t NodeMachine::kv_bytes(const StageRules& rules) const {
  const StageUnits* const units = packed_units();
  if (units == nullptr) throw Error(ErrorCode::kInvalidArgument, "no weights are loaded yet");
  int64_t bytes = 0;
  for (size_t group = 0; group < rules.group_blocks.size(); ++group) {
    CacheGroupSpec own = model().spec.cache_groups[group];
    std::erase_if(own.layers, [&](int32_t layer) { return !units->has_attention(layer); });
    bytes += int64_t{rules.group_blocks[group]} * kBlockTokens *
             kv_bytes_per_token(model().spec, own, model().rules.kv_dtype);
  }
  return bytes;
}

std::unique_ptr<Stage> NodeMachine::make_stage(const StageRules& rules) {
  if (stage_ && stage_rules_ == rules) {
    stage_->reset();
    return std::move(stage_);
  }
  if (stage_) weights_.emplace(stage_->take_weights());
  stage_.reset();
  if (!weights_) throw Error(ErrorCode::kInvalidArgument, "no weights are loaded yet");
  auto stage =
      std::make_unique<Stage>(*backend_, model_->spec, std::move(*weights_), stage_config(model_->rules, rules), comm_);
  weights_.reset();
  stage_rules_ = rules;
  return stage;
}

}  // namespace headrace::cluster
