#include "model/workspace.h"

#include <algorithm>

namespace headrace {
namespace {

/// The largest sizes over the layers, in floats per token.
struct Widths {
  int64_t q = 0, k = 0, v = 0, mixed = 0, ffn = 0;
};

Widths widest(const ArchSpec& spec) {
  Widths w;
  for (const LayerSpec& layer : spec.layers) {
    const AttentionSpec& a = layer.attention;
    w.q = std::max<int64_t>(w.q, static_cast<int64_t>(a.heads) * a.head_dim);
    w.k = std::max<int64_t>(w.k, static_cast<int64_t>(a.kv_heads) * a.head_dim);
    w.v = std::max<int64_t>(w.v, static_cast<int64_t>(a.kv_heads) * a.v_head_dim);
    w.mixed = std::max<int64_t>(w.mixed, static_cast<int64_t>(a.heads) * a.v_head_dim);
    w.ffn = std::max<int64_t>(w.ffn, layer.feed_forward.hidden);
  }
  return w;
}

/// Bytes of a record that holds any row of up to `k` values in a quantised form. Inputs whose length is no multiple of
/// the form's block are never rounded to it, so `k` may be rounded up.
int64_t largest_record(ActForm form, int64_t k) {
  constexpr int64_t kLargestBlock = 256;
  return act_row_bytes(form, (k + kLargestBlock - 1) / kLargestBlock * kLargestBlock);
}

}  // namespace

Workspace::Workspace(Backend& backend, const ArchSpec& spec, int64_t tokens) : max_tokens(tokens) {
  const Widths w = widest(spec);
  const auto floats = [&](int64_t width) {
    return DeviceBuffer(backend, tokens * width * static_cast<int64_t>(sizeof(float)));
  };
  x = floats(spec.hidden);
  h = floats(spec.hidden);
  q = floats(w.q);
  k = floats(w.k);
  v = floats(w.v);
  mixed = floats(w.mixed);
  gate = floats(w.ffn);
  up = floats(w.ffn);
  delta = floats(spec.hidden);
  for (const RopeSpec& rope : spec.ropes) cos_sin.push_back(floats(2 * static_cast<int64_t>(rope.inv_freq.size())));
  const int64_t longest = std::max({static_cast<int64_t>(spec.hidden), w.mixed, w.ffn});
  for (const ActForm form : {ActForm::kQ8x32, ActForm::kQ8x256}) {
    acts[static_cast<size_t>(form)] = DeviceBuffer(backend, tokens * largest_record(form, longest));
  }
}

void LinearRunner::set_input(const float* x, int64_t rows, int64_t k) noexcept {
  x_ = x;
  rows_ = rows;
  k_ = k;
  rounded_.fill(false);
}

void LinearRunner::run(Queue& queue, const Linear& linear, float* y) noexcept {
  const ActForm form = linear.recipe->act;
  ActView act{.form = form, .data = nullptr, .rows = rows_, .k = k_};
  if (form == ActForm::kF32) {
    act.data = reinterpret_cast<std::byte*>(const_cast<float*>(x_));  // products only read it
  } else {
    act.data = workspace_.acts[static_cast<size_t>(form)].data();
    bool& rounded = rounded_[static_cast<size_t>(form)];
    if (!rounded) backend_.ops().quantize(queue, QuantizeArgs{.x = x_, .y = act});
    rounded = true;
  }
  backend_.ops().matmul(queue,
                        MatmulArgs{.x = act, .w = linear.w, .bias = linear.bias, .y = y, .y_stride = linear.w.n});
}

}  // namespace headrace
