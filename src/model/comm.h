#pragma once

#include "backend/backend.h"

namespace headrace {

/// What the ranks of one stage say to each other. Every rank calls the same functions in the same order.
class Comm {
 public:
  virtual ~Comm() = default;
  [[nodiscard]] virtual int32_t rank() const noexcept = 0;
  [[nodiscard]] virtual int32_t ranks() const noexcept = 0;
  /// Replaces f32 device memory on every rank by the sum over the ranks, in the queue's order.
  virtual void all_reduce(Queue& queue, float* data, int64_t n) noexcept = 0;
};

/// A stage of one rank: nothing to say.
class SingleRank final : public Comm {
 public:
  [[nodiscard]] int32_t rank() const noexcept override { return 0; }
  [[nodiscard]] int32_t ranks() const noexcept override { return 1; }
  void all_reduce(Queue&, float*, int64_t) noexcept override {}
};

}  // namespace headrace
