#pragma once

#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "base/compute_pool.h"
#include "engine/continuation.h"

namespace headrace {

/// A token to choose: the logits of a sampled row, and the continuation that they are for.
struct SampleJob {
  SequenceId sequence{};
  Continuation* continuation = nullptr;
  std::span<const float> logits;
  int64_t position = 0;    ///< of the token, in its sequence
  SampledToken sampled{};  ///< the result
  bool is_broken = false;  ///< the logits are not numbers: nothing was sampled
};

/// Samples the rows of a step on all threads of a pool. Rows do not depend on each other. Threading: one thread, the
/// pool's.
class RowSampler {
 public:
  RowSampler(ComputePool& pool, int32_t vocab_size);

  void run(std::span<SampleJob> jobs) noexcept;
  /// For use on the calling thread, outside run().
  [[nodiscard]] Sampler& one() noexcept { return *samplers_[0]; }

 private:
  ComputePool& pool_;
  std::vector<std::unique_ptr<Sampler>> samplers_;
  std::vector<Sampler*> idle_;
  std::mutex mutex_;  // of idle_
};

}  // namespace headrace
