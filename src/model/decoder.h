#pragma once

#include "backend/backend.h"
#include "kv/kv_slabs.h"
#include "model/comm.h"
#include "model/step_inputs.h"
#include "model/workspace.h"

namespace headrace {

/// The one decoder: runs any ArchSpec by the operators of a backend. Borrows everything.
class Decoder {
 public:
  /// Throws Error(kUnsupported) where the backend lacks an operator that the spec needs.
  Decoder(Backend& backend, const ArchSpec& spec, const StageWeights& weights, const KvSlabs& slabs,
          Workspace& workspace, Comm& comm);

  /// workspace.x = embeddings of the step's tokens. For rank 0.
  void embed(Queue& queue, const StepInputs& inputs) noexcept;
  /// Runs the stage's sublayers over workspace.x, writing the KV cache.
  void run_layers(Queue& queue, const StepInputs& inputs) noexcept;

 private:
  void run_attention(Queue& queue, const StepInputs& inputs, int32_t index) noexcept;
  void run_feed_forward(Queue& queue, const StepInputs& inputs, int32_t index) noexcept;
  [[nodiscard]] RowChain rows_from_residual(int64_t rows) noexcept;
  void normalise(Queue& queue, RowChain& chain, const float* w, std::initializer_list<const Linear*> readers) noexcept;
  void write_cache(Queue& queue, const StepInputs& inputs, int32_t index) noexcept;
  void leave_delta(Queue& queue, int64_t rows) noexcept;
  [[nodiscard]] int32_t heads_here(const AttentionSpec& attention) const noexcept {
    return attention.heads / comm_.place().ranks;
  }

  Backend& backend_;
  const ArchSpec& spec_;
  const StageWeights& weights_;
  const KvSlabs& slabs_;
  Workspace& work_;
  Comm& comm_;
  LinearRunner linears_;
  bool has_delta_ = false;              // work_.delta is still to be added to the residual stream
  std::vector<DeviceBuffer> inv_freq_;  // of each rope
};

}  // namespace headrace
