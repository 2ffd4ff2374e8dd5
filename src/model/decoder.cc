#include "model/decoder.h"

#include "base/error.h"

namespace headrace {
namespace {

void require_operators(const Backend& backend) {
  const OpEntries& ops = backend.ops();
  const std::pair<const char*, bool> needed[] = {
      {"embed", ops.embed != nullptr},
      {"row_chain", ops.row_chain != nullptr},
      {"matmul_batch", ops.matmul_batch != nullptr},
      {"gather_rows", ops.gather_rows != nullptr},
      {"rope_table", ops.rope_table != nullptr},
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
  const StageUnits& units = weights_.units();
  if (units.num_sublayers() == 0) return;
  for (size_t i = 0; i < spec_.ropes.size(); ++i) {
    const RopeSpec& rope = spec_.ropes[i];
    backend_.ops().rope_table(queue, RopeTableArgs{.positions = inputs.positions(),
                                                   .inv_freq = inv_freq_[i].as<float>(),
                                                   .cos_sin = work_.cos_sin[i].as<float>(),
                                                   .rows = inputs.num_tokens(),
                                                   .half = static_cast<int64_t>(rope.inv_freq.size()),
                                                   .scale = rope.scale});
  }
  for (int32_t i = units.first_layer(); i < units.end_layer(); ++i) {
    if (units.has_attention(i)) run_attention(queue, inputs, i);
    if (units.has_feed_forward(i)) run_feed_forward(queue, inputs, i);
  }
  if (has_delta_) backend_.ops().row_chain(queue, rows_from_residual(inputs.num_tokens()));
}

/// A chain that begins with what the block before has left to be added.
RowChain Decoder::rows_from_residual(int64_t rows) noexcept {
  RowChain chain(rows);
  if (has_delta_) {
    chain.then(AddArgs{.a = work_.x.as<float>(),
                       .b = work_.delta.as<float>(),
                       .y = work_.x.as<float>(),
                       .rows = rows,
                       .dim = spec_.hidden});
  }
  has_delta_ = false;
  return chain;
}

/// This rank's columns of work_.delta are there: the next chain adds all of them.
void Decoder::leave_delta(Queue& queue, int64_t rows) noexcept {
  comm_.all_gather(
      queue,
      {.part = work_.part_of(work_.delta), .whole = work_.delta.as<float>(), .rows = rows, .width = spec_.hidden});
  has_delta_ = true;
}

/// Runs the chain, and then the norm of the residual stream as the input of `readers`.
void Decoder::normalise(Queue& queue, RowChain& chain, const float* w,
                        std::initializer_list<const Linear*> readers) noexcept {
  float* h = work_.h.as<float>();
  chain.then(RmsNormArgs{
      .x = work_.x.as<float>(), .w = w, .y = h, .rows = chain.rows, .dim = spec_.hidden, .eps = spec_.norm_eps});
  linears_.set_input(chain, h, chain.rows, spec_.hidden, readers);
  backend_.ops().row_chain(queue, chain);
}

/// Norms of query and key heads, rotation, and the way into the cache.
void Decoder::write_cache(Queue& queue, const StepInputs& inputs, int32_t index) noexcept {
  const LayerSpec& layer = spec_.layers[static_cast<size_t>(index)];
  const AttentionSpec& a = layer.attention;
  const LayerWeights& w = weights_.layer(index);
  const auto slab_index = static_cast<size_t>(index - weights_.units().first_cached());
  const RopeSpec& rope = spec_.ropes[static_cast<size_t>(a.rope)];
  const int64_t rows = inputs.num_tokens();
  float* k = work_.k.as<float>();
  RowChain chain(rows);
  const auto norm_and_rotate = [&](float* x, const float* norm, int32_t heads) {
    if (a.qk_norm) {
      chain.then(
          RmsNormArgs{.x = x, .w = norm, .y = x, .rows = rows * heads, .dim = a.head_dim, .eps = spec_.norm_eps});
    }
    chain.then(RopeArgs{.x = x,
                        .cos_sin = work_.cos_sin[static_cast<size_t>(a.rope)].as<float>(),
                        .rows = rows,
                        .heads = heads,
                        .head_dim = a.head_dim,
                        .half = static_cast<int64_t>(rope.inv_freq.size()),
                        .layout = rope.layout});
  };
  norm_and_rotate(work_.q.as<float>(), w.q_norm, heads_here(a));
  norm_and_rotate(k, w.k_norm, slabs_.layout(slab_index).kv_heads);
  chain.then(KvWriteArgs{.layout = slabs_.layout(slab_index),
                         .k = k,
                         .v = work_.v.as<float>(),
                         .slots = inputs.slots(layer.cache_group),
                         .slab = slabs_.slab(slab_index),
                         .rows = rows});
  backend_.ops().row_chain(queue, chain);
}

void Decoder::run_attention(Queue& queue, const StepInputs& inputs, int32_t index) noexcept {
  const LayerSpec& layer = spec_.layers[static_cast<size_t>(index)];
  const AttentionSpec& a = layer.attention;
  const LayerWeights& w = weights_.layer(index);
  const auto slab_index = static_cast<size_t>(index - weights_.units().first_cached());
  const int64_t rows = inputs.num_tokens();
  float* q = work_.q.as<float>();
  float* mixed = work_.mixed.as<float>();
  float* mixed_here = work_.part_of(work_.mixed);

  RowChain residual = rows_from_residual(rows);
  normalise(queue, residual, w.attn_norm, {&w.q, &w.k, &w.v});
  linears_.run(queue, {{w.q, q}, {w.k, work_.k.as<float>()}, {w.v, work_.v.as<float>()}});
  write_cache(queue, inputs, index);
  backend_.ops().attention(queue, AttentionArgs{.layout = slabs_.layout(slab_index),
                                                .q = q,
                                                .slab = slabs_.slab(slab_index),
                                                .block_table = inputs.block_table(),
                                                .table_begin = inputs.table_begin(layer.cache_group),
                                                .positions = inputs.positions(),
                                                .out = mixed_here,
                                                .rows = rows,
                                                .heads = heads_here(a),
                                                .window = a.window,
                                                .scale = a.scale});
  const int64_t width = static_cast<int64_t>(a.heads) * a.v_head_dim;
  comm_.all_gather(
      queue,
      {.part = mixed_here, .whole = mixed, .rows = rows, .width = width, .unit = a.heads / a.kv_heads * a.v_head_dim});
  RowChain rounding(rows);
  linears_.set_input(rounding, mixed, rows, width, {&w.attn_output});
  backend_.ops().row_chain(queue, rounding);
  linears_.run(queue, {{w.attn_output, work_.part_of(work_.delta)}});
  leave_delta(queue, rows);
}

void Decoder::run_feed_forward(Queue& queue, const StepInputs& inputs, int32_t index) noexcept {
  const LayerWeights& w = weights_.layer(index);
  const int64_t rows = inputs.num_tokens();
  const int64_t width = spec_.layers[static_cast<size_t>(index)].feed_forward.hidden;
  float* gate = work_.gate.as<float>();
  float* up = work_.up.as<float>();

  RowChain residual = rows_from_residual(rows);
  normalise(queue, residual, w.ffn_norm, {&w.gate, &w.up});
  linears_.run(queue, {{w.gate, gate}, {w.up, up}});
  RowChain activation(rows);
  activation.then(SiluMulArgs{.gate = gate, .up = up, .y = gate, .rows = rows, .dim = comm_.place().columns(width)});
  float* activated = gate;
  if (comm_.place().ranks > 1) {
    activated = work_.activated.as<float>();
    backend_.ops().row_chain(queue, activation);
    comm_.all_gather(queue, {.part = gate, .whole = activated, .rows = rows, .width = width});
    activation = RowChain(rows);
  }
  linears_.set_input(activation, activated, rows, width, {&w.down});
  backend_.ops().row_chain(queue, activation);
  linears_.run(queue, {{w.down, work_.part_of(work_.delta)}});
  leave_delta(queue, rows);
}

}  // namespace headrace
