#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "sample/sampler.h"

namespace headrace {

/// Prepares rows for sampling (masks of grammars) on a thread of its own, while the model computes their logits. The
/// thread begins with the first row. Threading: one thread.
class RowPreparation {
 public:
  RowPreparation() = default;
  ~RowPreparation();

  /// Calls state.prepare(); nobody else may use `state` before wait() has returned.
  void add(SamplingState& state);
  /// Returns when all that was added is prepared.
  void wait();

 private:
  void run() noexcept;

  std::mutex mutex_;
  std::condition_variable work_, done_;
  std::vector<SamplingState*> waiting_;
  int64_t unfinished_ = 0;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace headrace
