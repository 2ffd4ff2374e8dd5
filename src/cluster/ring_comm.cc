#include "cluster/ring_comm.h"

#include <algorithm>

namespace headrace::cluster {
namespace {

constexpr auto kFloatBytes = static_cast<int64_t>(sizeof(float));

}  // namespace

void RingComm::broadcast(Queue& queue, float* data, int64_t n) noexcept {
  if (ring_.fault()) return;
  const bool first = place().rank == 0;
  queue.synchronize();
  whole_.resize(std::max(whole_.size(), static_cast<size_t>(n)));
  if (first) {
    backend_.download(queue, whole_.data(), data, n * kFloatBytes);
    queue.synchronize();
  }
  ring_.broadcast(std::as_writable_bytes(std::span(whole_).first(static_cast<size_t>(n))));
  if (!first) backend_.upload(queue, data, whole_.data(), n * kFloatBytes);
}

void RingComm::gather_blocks(Queue& queue, const DividedRows& r, bool to_first) noexcept {
  if (ring_.fault()) return;
  const auto [rank, ranks] = place();
  const auto columns = [&](int32_t of) { return split_evenly(r.width, r.unit, of, ranks); };
  // The block of each rank, [rows, its columns], one after the other.
  blocks_.resize(std::max(blocks_.size(), static_cast<size_t>(r.rows * r.width)));
  const auto block = [&](int32_t of) { return blocks_.data() + r.rows * columns(of).begin; };
  views_.clear();
  for (int32_t i = 0; i < ranks; ++i) {
    views_.push_back(std::as_writable_bytes(std::span(block(i), static_cast<size_t>(r.rows * columns(i).size()))));
  }
  backend_.download(queue, block(rank), r.part, r.rows * columns(rank).size() * kFloatBytes);
  queue.synchronize();
  ring_.gather(views_, to_first);
  if (to_first && rank != 0) return;
  whole_.resize(std::max(whole_.size(), static_cast<size_t>(r.rows * r.width)));
  for (int32_t i = 0; i < ranks; ++i) {
    const auto [begin, end] = columns(i);
    for (int64_t row = 0; row < r.rows; ++row) {
      std::copy_n(block(i) + row * (end - begin), end - begin, whole_.data() + row * r.width + begin);
    }
  }
  backend_.upload(queue, r.whole, whole_.data(), r.rows * r.width * kFloatBytes);
}

}  // namespace headrace::cluster
