#include "model/decoder.h"

#include "base/error.h"

namespace headrace {
namespace {

void require_operators(const Backend& backend) {
  const OpEntries& ops = backend.ops();
  const std::pair<const char*, bool> needed[] = {
      {"embed", ops.embed != nullptr},
      {"rms_norm", ops.rms_norm != nullptr},
      {"quantize", ops.quantize != nullptr},
      {"matmul", ops.matmul != nullptr},
      {"add", ops.add != nullptr},
      {"silu_mul", ops.silu_mul != nullptr},
      {"gather_rows", ops.gather_rows != nullptr},
      {"rope_table", ops.rope_table != nullptr},
      {"rope", ops.rope != nullptr},
      {"kv_write", ops.kv_write != nullptr},
      {"attention", ops.attention != nullptr},
  };
  for (const auto& [name, present] : needed) {
    if (!present) throw Error(ErrorCode::kUnsupported, cat("backend ", backend.name(), " has no operator ", name));
  }
}

}  // namespace

Decoder::Decoder(Backend& backend, const ArchSpec& spec, const StageWeights& weights, const KvSlabs& slabs,
                 Workspace& workspace, Comm& comm)
    : backend_(backend),
      spec_(spec),
      weights_(weights),
      slabs_(slabs),
      work_(workspace),
      comm_(comm),
      linears_(backend, workspace) {
  require_operators(backend);
  const std::unique_ptr<Queue> queue = backend.make_queue();
  for (const RopeSpec& rope : spec.ropes) {
    DeviceBuffer& to = inv_freq_.emplace_back(backend, static_cast<int64_t>(rope.inv_freq.size() * sizeof(float)));
    backend.upload(*queue, to.data(), rope.inv_freq.data(), to.bytes());
  }
  queue->synchronize();
}

void Decoder::embed(Queue& queue, const StepInputs& inputs) noexcept {
  backend_.ops().embed(queue, EmbedArgs{.table = weights_.embedding(),
                                        .tokens = inputs.tokens(),
                                        .y = work_.x.as<float>(),
                                        .rows = inputs.num_tokens()});
}

void Decoder::run_layers(Queue& queue, const StepInputs& inputs) noexcept {
  for (size_t i = 0; i < spec_.ropes.size(); ++i) {
    const RopeSpec& rope = spec_.ropes[i];
    backend_.ops().rope_table(queue, RopeTableArgs{.positions = inputs.positions(),
                                                   .inv_freq = inv_freq_[i].as<float>(),
                                                   .cos_sin = work_.cos_sin[i].as<float>(),
                                                   .rows = inputs.num_tokens(),
                                                   .half = static_cast<int64_t>(rope.inv_freq.size()),
                                                   .scale = rope.scale});
  }
  for (int32_t i = weights_.units().first_layer; i < weights_.units().end_layer; ++i) {
    run_attention(queue, inputs, i);
    run_feed_forward(queue, inputs, i);
  }
}

void Decoder::normalise(Queue& queue, const float* w, int64_t rows) noexcept {
  backend_.ops().rms_norm(queue, RmsNormArgs{.x = work_.x.as<float>(),
                                             .w = w,
                                             .y = work_.h.as<float>(),
                                             .rows = rows,
                                             .dim = spec_.hidden,
                                             .eps = spec_.norm_eps});
  linears_.set_input(work_.h.as<float>(), rows, spec_.hidden);
}

void Decoder::normalise_heads(Queue& queue, float* heads, const float* w, int64_t rows, int32_t dim) noexcept {
  backend_.ops().rms_norm(queue,
                          RmsNormArgs{.x = heads, .w = w, .y = heads, .rows = rows, .dim = dim, .eps = spec_.norm_eps});
}

void Decoder::add_delta(Queue& queue, int64_t rows) noexcept {
  comm_.all_reduce(queue, work_.delta.as<float>(), rows * spec_.hidden);
  backend_.ops().add(queue, AddArgs{.a = work_.x.as<float>(),
                                    .b = work_.delta.as<float>(),
                                    .y = work_.x.as<float>(),
                                    .rows = rows,
                                    .dim = spec_.hidden});
}

void Decoder::run_attention(Queue& queue, const StepInputs& inputs, int32_t index) noexcept {
  const LayerSpec& layer = spec_.layers[static_cast<size_t>(index)];
  const AttentionSpec& a = layer.attention;
  const LayerWeights& w = weights_.layer(index);
  const auto slab_index = static_cast<size_t>(index - weights_.units().first_layer);
  const OpEntries& ops = backend_.ops();
  const int64_t rows = inputs.num_tokens();
  float* q = work_.q.as<float>();
  float* k = work_.k.as<float>();
  float* v = work_.v.as<float>();

  normalise(queue, w.attn_norm, rows);
  linears_.run(queue, w.q, q);
  linears_.run(queue, w.k, k);
  linears_.run(queue, w.v, v);
  if (a.qk_norm) {
    normalise_heads(queue, q, w.q_norm, rows * a.heads, a.head_dim);
    normalise_heads(queue, k, w.k_norm, rows * a.kv_heads, a.head_dim);
  }
  const RopeSpec& rope = spec_.ropes[static_cast<size_t>(a.rope)];
  RopeArgs rotate{.x = q,
                  .cos_sin = work_.cos_sin[static_cast<size_t>(a.rope)].as<float>(),
                  .rows = rows,
                  .heads = a.heads,
                  .head_dim = a.head_dim,
                  .half = static_cast<int64_t>(rope.inv_freq.size()),
                  .layout = rope.layout};
  ops.rope(queue, rotate);
  rotate.x = k;
  rotate.heads = a.kv_heads;
  ops.rope(queue, rotate);

  const KvLayout& kv = slabs_.layout(slab_index);
  std::byte* slab = slabs_.slab(slab_index);
  ops.kv_write(
      queue,
      KvWriteArgs{.layout = kv, .k = k, .v = v, .slots = inputs.slots(layer.cache_group), .slab = slab, .rows = rows});
  ops.attention(queue, AttentionArgs{.layout = kv,
                                     .q = q,
                                     .slab = slab,
                                     .block_table = inputs.block_table(),
                                     .table_begin = inputs.table_begin(layer.cache_group),
                                     .positions = inputs.positions(),
                                     .out = work_.mixed.as<float>(),
                                     .rows = rows,
                                     .heads = a.heads,
                                     .window = a.window,
                                     .scale = a.scale});
  linears_.set_input(work_.mixed.as<float>(), rows, static_cast<int64_t>(a.heads) * a.v_head_dim);
  linears_.run(queue, w.attn_output, work_.delta.as<float>());
  add_delta(queue, rows);
}

void Decoder::run_feed_forward(Queue& queue, const StepInputs& inputs, int32_t index) noexcept {
  const LayerWeights& w = weights_.layer(index);
  const int64_t rows = inputs.num_tokens();
  const int64_t width = spec_.layers[static_cast<size_t>(index)].feed_forward.hidden;
  float* gate = work_.gate.as<float>();
  float* up = work_.up.as<float>();

  normalise(queue, w.ffn_norm, rows);
  linears_.run(queue, w.gate, gate);
  linears_.run(queue, w.up, up);
  backend_.ops().silu_mul(queue, SiluMulArgs{.gate = gate, .up = up, .y = gate, .rows = rows, .dim = width});
  linears_.set_input(gate, rows, width);
  linears_.run(queue, w.down, work_.delta.as<float>());
  add_delta(queue, rows);
}

}  // namespace headrace
