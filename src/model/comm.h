#pragma once

#include <optional>

#include "arch/arch_spec.h"
#include "backend/backend.h"
#include "base/error.h"

namespace headrace {

/// A rank of a stage: one of `ranks` members that compute every layer together, each its heads and its output neurons.
struct RankPlace {
  int32_t rank = 0;
  int32_t ranks = 1;
  /// Columns of `width` that are this rank's, `unit` of which stay together.
  [[nodiscard]] int64_t columns(int64_t width, int64_t unit = 1) const noexcept {
    return split_evenly(width, unit, rank, ranks).size();
  }
};

/// Rows whose columns the ranks make side by side, in device memory. Rank r makes the columns split_evenly(width, unit,
/// r, ranks). With one rank `part` is `whole`, else they do not overlap.
struct DividedRows {
  const float* part = nullptr;  ///< f32 [rows, this rank's columns]
  float* whole = nullptr;       ///< f32 [rows, width]
  int64_t rows = 0;
  int64_t width = 0;
  int64_t unit = 1;
};

/// What the ranks of one stage say to each other. Every rank calls the same functions in the same order and with the
/// same sizes; all of them keep the queue's order. Nothing is summed: what comes out are the bits of one rank.
class Comm {
 public:
  virtual ~Comm() = default;
  [[nodiscard]] virtual RankPlace place() const noexcept = 0;
  /// Every rank gets `whole`.
  virtual void all_gather(Queue& queue, const DividedRows& rows) noexcept = 0;
  /// Rank 0 gets `whole`; that of others is not touched and may be null.
  virtual void gather(Queue& queue, const DividedRows& rows) noexcept = 0;
  /// Rank 0's `n` values replace those of the others.
  virtual void broadcast(Queue& queue, float* data, int64_t n) noexcept = 0;
  /// Why the ranks can no longer speak with each other: one is gone, or late. From then on the calls above do nothing
  /// and what they leave means nothing.
  [[nodiscard]] virtual std::optional<Error> fault() const = 0;
};

/// A stage of one rank: nothing to say.
class SingleRank final : public Comm {
 public:
  [[nodiscard]] RankPlace place() const noexcept override { return {}; }
  void all_gather(Queue&, const DividedRows&) noexcept override {}
  void gather(Queue&, const DividedRows&) noexcept override {}
  void broadcast(Queue&, float*, int64_t) noexcept override {}
  [[nodiscard]] std::optional<Error> fault() const override { return std::nullopt; }
};

}  // namespace headrace
