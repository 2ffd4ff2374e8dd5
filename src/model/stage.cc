#include "model/stage.h"

#include <algorithm>

namespace headrace {
namespace {

/// Rows whose logits are made at once: bounds the memory that a large vocabulary takes.
constexpr int64_t kLogitRows = 64;

std::vector<KvSlabs::Layer> slab_layers(const ArchSpec& spec, const StageWeights& weights, const StageConfig& config) {
  const StageUnits& units = weights.units();
  std::vector<KvSlabs::Layer> layers;
  for (int32_t i = units.first_cached(); i < units.end_layer(); ++i) {
    const LayerSpec& layer = spec.layers[static_cast<size_t>(i)];
    if (layer.attention.head_dim > kMaxHeadDim || layer.attention.v_head_dim > kMaxHeadDim) {
      throw Error(ErrorCode::kUnsupported, cat("attention heads of ", layer.attention.head_dim, " and ",
                                               layer.attention.v_head_dim, " components; at most ", kMaxHeadDim));
    }
    layers.push_back({.number = i,
                      .group = layer.cache_group,
                      .layout = {.dtype = config.kv_dtype,
                                 .kv_heads = layer.attention.kv_heads / weights.place().ranks,
                                 .head_dim = layer.attention.head_dim,
                                 .v_head_dim = layer.attention.v_head_dim},
                      .num_blocks = config.group_blocks[static_cast<size_t>(layer.cache_group)]});
  }
  return layers;
}

void name_outputs(const StepPlan& plan, StepResult& result) {
  result.epoch = plan.epoch;
  result.step_id = plan.step_id;
  result.outputs.clear();
  for (const PlanRow& row : plan.rows) {
    for (int32_t i = row.num_tokens - row.num_outputs; i < row.num_tokens; ++i) {
      result.outputs.push_back({row.sequence, row.first_pos + i});
    }
  }
}

}  // namespace

Stage::Stage(Backend& backend, const ArchSpec& spec, StageWeights weights, const StageConfig& config, Comm& comm)
    : backend_(backend),
      spec_(spec),
      config_(config),
      weights_(std::move(weights)),
      queue_(backend.make_queue()),
      tables_(plan_limits(spec, config)),
      slabs_(backend, slab_layers(spec, weights_, config)),
      work_(backend, spec, weights_.units().num_sublayers() > 0, config.max_tokens, weights_.place()),
      inputs_(backend, static_cast<int32_t>(spec.cache_groups.size())),
      decoder_(backend, spec, weights_, slabs_, work_, comm),
      output_linear_(backend, work_),
      comm_(comm) {
  const auto [rank, ranks] = weights_.place();
  HR_CHECK(rank == comm.place().rank && ranks == comm.place().ranks, "weights of another rank");
  if (!weights_.units().output) return;
  const auto logits_of = [&](int64_t columns) {
    return DeviceBuffer(
        backend, std::min<int64_t>(kLogitRows, config.max_tokens) * columns * static_cast<int64_t>(sizeof(float)));
  };
  if (rank == 0 && !backend.uses_host_memory()) logits_ = logits_of(spec.vocab_size);
  if (ranks > 1) logits_here_ = logits_of(weights_.output().w.n);
}

PlanLimits Stage::plan_limits(const ArchSpec& spec, const StageConfig& config) {
  return {.num_groups = static_cast<int32_t>(spec.cache_groups.size()),
          .group_blocks = config.group_blocks,
          .block_tokens = kBlockTokens,
          .vocab_size = spec.vocab_size,
          .max_tokens = config.max_tokens,
          .max_seq_len = config.max_seq_len};
}

bool Stage::output_alone() const noexcept {
  const StageUnits& units = weights_.units();
  return units.output && !units.embedding && units.num_sublayers() == 0;
}

void Stage::gather(const float* x, const int32_t* index, int64_t rows) noexcept {
  backend_.ops().gather_rows(
      *queue_, GatherRowsArgs{.x = x, .index = index, .y = work_.h.as<float>(), .rows = rows, .dim = spec_.hidden});
}

void Stage::project(const float* x, int64_t rows, StepResult& result) {
  const bool first = comm_.place().rank == 0;
  const bool downloads = first && !backend_.uses_host_memory();
  result.width = spec_.vocab_size;
  // Not cleared before: that would fill it with zeros.
  result.data.resize(first ? static_cast<size_t>(rows * result.width) : 0);
  float* normed = work_.delta.as<float>();
  for (int64_t begin = 0; begin < rows; begin += kLogitRows) {
    const int64_t n = std::min(kLogitRows, rows - begin);
    float* const result_at = first ? result.data.data() + begin * result.width : nullptr;
    float* const whole = downloads ? logits_.as<float>() : result_at;
    float* const here = comm_.place().ranks > 1 ? logits_here_.as<float>() : whole;
    RowChain chain(n);
    chain.then(RmsNormArgs{.x = x + begin * spec_.hidden,
                           .w = weights_.output_norm(),
                           .y = normed,
                           .rows = n,
                           .dim = spec_.hidden,
                           .eps = spec_.norm_eps});
    output_linear_.set_input(chain, normed, n, spec_.hidden, {&weights_.output()});
    backend_.ops().row_chain(*queue_, chain);
    output_linear_.run(*queue_, {{weights_.output(), here}});
    comm_.gather(*queue_, {.part = here, .whole = whole, .rows = n, .width = result.width, .unit = kNeuronGroup});
    if (downloads) {
      backend_.download(*queue_, result_at, whole, n * result.width * static_cast<int64_t>(sizeof(float)));
    }
  }
}

Result<std::monostate> Stage::run(const StepPlan& plan, std::span<const float> activations, StageOutput& out) {
  if (const std::optional<Error> fault = comm_.fault()) return *fault;
  const StageUnits& units = weights_.units();
  const auto rows = output_alone() ? num_outputs(plan) : static_cast<int64_t>(plan.tokens.size());
  const bool first = comm_.place().rank == 0;
  if (first && !units.embedding && static_cast<int64_t>(activations.size()) != rows * spec_.hidden) {
    return Error(ErrorCode::kCorrupt, cat("step ", raw(plan.step_id), ": ", activations.size(),
                                          " activations, expected ", rows, " rows of ", spec_.hidden));
  }
  if (auto applied = tables_.apply(plan); !applied) return applied;
  out.activations.clear();
  name_outputs(plan, out.result);
  for (const BlockCopy& copy : plan.copies) slabs_.copy(*queue_, copy);
  if (plan.tokens.empty()) {
    out.result.data.clear();
    queue_->synchronize();
    return std::monostate{};
  }

  inputs_.upload(*queue_, plan, tables_);
  if (first && units.embedding) {
    decoder_.embed(*queue_, inputs_);
  } else if (first) {
    backend_.upload(*queue_, work_.x.data(), activations.data(), static_cast<int64_t>(activations.size_bytes()));
  }
  comm_.broadcast(*queue_, work_.x.as<float>(), rows * spec_.hidden);
  decoder_.run_layers(*queue_, inputs_);

  const float* leaving = work_.x.as<float>();
  int64_t leaving_rows = rows;
  if ((units.output && !output_alone()) || config_.gather_outputs) {
    leaving_rows = inputs_.num_outputs();
    gather(leaving, inputs_.output_rows(), leaving_rows);
    leaving = work_.h.as<float>();
  }
  if (units.output) {
    project(leaving, leaving_rows, out.result);
  } else if (first) {
    out.activations.resize(static_cast<size_t>(leaving_rows * spec_.hidden));
    backend_.download(*queue_, out.activations.data(), leaving,
                      static_cast<int64_t>(out.activations.size() * sizeof(float)));
  }
  queue_->synchronize();
  if (const std::optional<Error> fault = comm_.fault()) return *fault;
  return std::monostate{};
}

void Stage::resize_cache(int32_t group, int32_t num_blocks) {
  tables_.set_group_blocks(group, num_blocks);
  config_.group_blocks[static_cast<size_t>(group)] = num_blocks;
  slabs_.resize(group, num_blocks);
}

}  // namespace headrace
