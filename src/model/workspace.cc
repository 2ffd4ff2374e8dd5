#include "model/workspace.h"

#include <algorithm>

namespace headrace {
namespace {

/// The largest sizes over the layers, in floats per token; of mixed and ffn those of all ranks.
struct Widths {
  int64_t q = 0, k = 0, v = 0, mixed = 0, ffn = 0;
  int64_t rounded = 0;  ///< the longest row that a product reads
};

Widths widest(const ArchSpec& spec, bool has_layers, int32_t ranks) {
  Widths w{.rounded = spec.hidden};
  if (!has_layers) return w;
  for (const LayerSpec& layer : spec.layers) {
    const AttentionSpec& a = layer.attention;
    w.q = std::max<int64_t>(w.q, static_cast<int64_t>(a.heads) / ranks * a.head_dim);
    w.k = std::max<int64_t>(w.k, static_cast<int64_t>(a.kv_heads) / ranks * a.head_dim);
    w.v = std::max<int64_t>(w.v, static_cast<int64_t>(a.kv_heads) / ranks * a.v_head_dim);
    w.mixed = std::max<int64_t>(w.mixed, static_cast<int64_t>(a.heads) * a.v_head_dim);
    w.ffn = std::max<int64_t>(w.ffn, layer.feed_forward.hidden);
  }
  w.rounded = std::max({w.rounded, w.mixed, w.ffn});
  return w;
}

/// Bytes of a record that holds any row of up to `k` values in a rounded form, whose blocks `k` need not fill.
int64_t largest_record(ActForm form, int64_t k) {
  constexpr int64_t kLargestBlock = 256;
  return act_row_bytes(form, (k + kLargestBlock - 1) / kLargestBlock * kLargestBlock);
}

}  // namespace

int64_t workspace_token_bytes(const ArchSpec& spec, bool has_layers) noexcept {
  const Widths w = widest(spec, has_layers, 1);
  int64_t floats = 3 * int64_t{spec.hidden} + w.q + w.k + w.v + w.mixed + 2 * w.ffn;
  if (has_layers) {
    for (const RopeSpec& rope : spec.ropes) floats += 2 * static_cast<int64_t>(rope.inv_freq.size());
  }
  int64_t bytes = floats * static_cast<int64_t>(sizeof(float));
  for (const ActForm form : kRoundedActForms) bytes += largest_record(form, w.rounded);
  return bytes;
}

Workspace::Workspace(Backend& backend, const ArchSpec& spec, bool has_layers, int64_t tokens, RankPlace place)
    : max_tokens(tokens) {
  const Widths w = widest(spec, has_layers, place.ranks);
  const auto floats = [&](int64_t width) {
    if (width == 0) return DeviceBuffer();
    return DeviceBuffer(backend, tokens * width * static_cast<int64_t>(sizeof(float)));
  };
  x = floats(spec.hidden);
  h = floats(spec.hidden);
  q = floats(w.q);
  k = floats(w.k);
  v = floats(w.v);
  mixed = floats(w.mixed);
  gate = floats(place.columns(w.ffn));
  up = floats(place.columns(w.ffn));
  if (place.ranks > 1) {
    activated = floats(w.ffn);
    part = floats(std::max(w.mixed / place.ranks, place.columns(spec.hidden)));
  }
  delta = floats(spec.hidden);
  if (has_layers) {
    for (const RopeSpec& rope : spec.ropes) cos_sin.push_back(floats(2 * static_cast<int64_t>(rope.inv_freq.size())));
  }
  for (const ActForm form : kRoundedActForms) {
    acts[static_cast<size_t>(form)] = DeviceBuffer(backend, tokens * largest_record(form, w.rounded));
  }
}

ActView LinearRunner::input(ActForm form) const noexcept {
  // Products only read it.
  std::byte* const data = form == ActForm::kF32 ? reinterpret_cast<std::byte*>(const_cast<float*>(x_))
                                                : workspace_.acts[static_cast<size_t>(form)].data();
  return {.form = form, .data = data, .rows = rows_, .k = k_};
}

void LinearRunner::set_input(RowChain& chain, const float* x, int64_t rows, int64_t k,
                             std::initializer_list<const Linear*> readers) noexcept {
  x_ = x;
  rows_ = rows;
  k_ = k;
  std::array<bool, kNumActForms> rounded{};
  for (const Linear* reader : readers) {
    const ActForm form = reader->recipe->act;
    if (form == ActForm::kF32 || rounded[static_cast<size_t>(form)]) continue;
    rounded[static_cast<size_t>(form)] = true;
    chain.then(QuantizeArgs{.x = x, .y = input(form)});
  }
}

void LinearRunner::run(Queue& queue, std::initializer_list<Product> products) noexcept {
  MatmulBatch batch;
  for (const auto& [linear, y] : products) {
    batch.products.push_back(
        {.x = input(linear.recipe->act), .w = linear.w, .bias = linear.bias, .y = y, .y_stride = linear.w.n});
  }
  backend_.ops().matmul_batch(queue, batch);
}

}  // namespace headrace
