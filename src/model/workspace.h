#pragma once

#include <array>
#include <initializer_list>

#include "arch/arch_spec.h"
#include "backend/backend.h"
#include "model/comm.h"
#include "model/stage_weights.h"

namespace headrace {

/// Device memory for the intermediate values of one step of at most `max_tokens` tokens. A stage without layers has
/// only x, h, delta and rounded rows of the residual stream's width. Heads, kv_heads, gate and up: this rank's.
struct Workspace {
  Workspace(Backend& backend, const ArchSpec& spec, bool has_layers, int64_t max_tokens, RankPlace place = {});

  /// Where this rank makes its columns of `whole`.
  [[nodiscard]] float* part_of(const DeviceBuffer& whole) const noexcept {
    return (part.data() == nullptr ? whole : part).as<float>();
  }

  int64_t max_tokens;
  DeviceBuffer x;      ///< residual stream, f32 [tokens, hidden]
  DeviceBuffer h;      ///< after a norm, f32 [tokens, hidden]
  DeviceBuffer q;      ///< f32 [tokens, heads, head_dim]
  DeviceBuffer k, v;   ///< f32 [tokens, kv_heads, head_dim]
  DeviceBuffer mixed;  ///< attention's result, f32 [tokens, the model's heads, v_head_dim]
  DeviceBuffer gate, up;
  DeviceBuffer activated;                       ///< gate * up of all ranks; none where there is one, which uses gate
  DeviceBuffer part;                            ///< this rank's columns of mixed or delta; none where there is one
  DeviceBuffer delta;                           ///< what a block adds to the residual stream, f32 [tokens, hidden]
  std::vector<DeviceBuffer> cos_sin;            ///< of each rope of the spec
  std::array<DeviceBuffer, kNumActForms> acts;  ///< rounded activations of each form
};

/// Bytes that a token takes in all of it, where there is one rank.
[[nodiscard]] int64_t workspace_token_bytes(const ArchSpec& spec, bool has_layers) noexcept;

/// A product of the current input: y[r] = x[r] W^T + bias, rows of y contiguous.
struct Product {
  const Linear& linear;
  float* y;
};

/// Runs products with inputs that several of them share: the input is rounded once for each form that they read.
class LinearRunner {
 public:
  LinearRunner(Backend& backend, Workspace& workspace) : backend_(backend), workspace_(workspace) {}

  /// The next products, with `readers`, read `x`, f32 [rows, k], which `chain` makes: adds the roundings to it.
  void set_input(RowChain& chain, const float* x, int64_t rows, int64_t k,
                 std::initializer_list<const Linear*> readers) noexcept;
  void run(Queue& queue, std::initializer_list<Product> products) noexcept;

 private:
  [[nodiscard]] ActView input(ActForm form) const noexcept;

  Backend& backend_;
  Workspace& workspace_;
  const float* x_ = nullptr;
  int64_t rows_ = 0;
  int64_t k_ = 0;
};

}  // namespace headrace
