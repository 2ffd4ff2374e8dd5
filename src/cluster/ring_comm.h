#pragma once

#include <vector>

#include "cluster/rank_ring.h"

namespace headrace::cluster {

/// What ranks in a ring say to each other. Values cross as they are: f32, little-endian. Borrows both. Threading: that
/// of the stage.
class RingComm final : public Comm {
 public:
  RingComm(Backend& backend, RankRing& ring) : backend_(backend), ring_(ring) {}

  [[nodiscard]] RankPlace place() const noexcept override { return ring_.place(); }
  void all_gather(Queue& queue, const DividedRows& rows) noexcept override { gather_blocks(queue, rows, false); }
  void gather(Queue& queue, const DividedRows& rows) noexcept override { gather_blocks(queue, rows, true); }
  void broadcast(Queue& queue, float* data, int64_t n) noexcept override;
  [[nodiscard]] std::optional<Error> fault() const override { return ring_.fault(); }

 private:
  void gather_blocks(Queue& queue, const DividedRows& rows, bool to_first) noexcept;

  Backend& backend_;
  RankRing& ring_;
  // On the host. When a call returns, the queue may still read whole_: the next one waits for it before it writes
  // there.
  std::vector<float> blocks_, whole_;
  std::vector<std::span<std::byte>> views_;
};

}  // namespace headrace::cluster
