#include "cluster/rank_ring.h"

#include <sys/socket.h>

#include <algorithm>
#include <array>

#include "base/byte_order.h"
#include "base/check.h"
#include "cluster/poll_until.h"
#include "cluster/time_limits.h"

namespace headrace::cluster {
namespace {

constexpr uint32_t kMagic = 0x6b725248;  // "HRrk"
constexpr size_t kHeadBytes = 16;
/// Waits are counted in slices: when all ranks are stopped for a while, as a machine may be, none of them is late.
constexpr int kSlices = 20;

iovec part_of(std::span<const std::byte> bytes) {
  return {const_cast<std::byte*>(bytes.data()), bytes.size()};  // iovec serves reading as well, so it has no const
}

}  // namespace

/// A message on its way out; there is none where it has no payload.
struct RankRing::Outgoing {
  std::span<const std::byte> payload{};
  std::array<std::byte, kHeadBytes> head{};
  size_t done = 0;  // of head and payload

  [[nodiscard]] bool finished() const noexcept { return payload.empty() || done == kHeadBytes + payload.size(); }
};

/// A message on its way in; there is none where it has neither payload nor order.
struct RankRing::Incoming {
  std::span<std::byte> payload{};
  std::vector<std::byte>* order = nullptr;  // becomes the payload, as long as the head says, at most `most_bytes`
  size_t most_bytes = 0;
  std::array<std::byte, kHeadBytes> head{};
  size_t done = 0;

  [[nodiscard]] bool has_head() const noexcept { return done >= kHeadBytes; }
  [[nodiscard]] bool finished() const noexcept {
    if (order != nullptr && !has_head()) return false;
    return payload.empty() || done == kHeadBytes + payload.size();
  }
};

RankRing::RankRing(RankPlace place, RankEnd to_next, RankEnd from_previous, double limit_seconds)
    : place_(place),
      to_next_(std::move(to_next)),
      from_previous_(std::move(from_previous)),
      limit_seconds_(limit_seconds) {
  HR_CHECK(place.ranks > 1 && place.rank >= 0 && place.rank < place.ranks, "rank ", place.rank, " of ", place.ranks);
}

void RankRing::fail(ErrorCode code, int32_t rank, const std::string& what) {
  fault_.emplace(code, cat("rank ", rank, " of ", place_.ranks, " ", what));
  shut_down();  // neighbours that wait for this rank learn of it at once
}

void RankRing::shut_down() noexcept {
  for (const RankEnd* end : {&to_next_, &from_previous_}) (void)::shutdown(end->socket.get(), SHUT_RDWR);
}

bool RankRing::is_broken() const noexcept {
  std::array<pollfd, 2> ends{{{to_next_.socket.get(), POLLRDHUP, 0}, {from_previous_.socket.get(), POLLRDHUP, 0}}};
  return ::poll(ends.data(), ends.size(), 0) > 0;
}

bool RankRing::took(const Progress& progress, int32_t neighbour, short& events) {
  switch (progress.kind) {
    case Progress::Kind::kMoved:
      return true;
    case Progress::Kind::kWaitReadable:
      events = POLLIN;
      return false;
    case Progress::Kind::kWaitWritable:
      events = POLLOUT;
      return false;
    case Progress::Kind::kEnded:
      fail(ErrorCode::kUnavailable, neighbour, "is gone");
      return false;
    case Progress::Kind::kFailed:
      fail(ErrorCode::kUnavailable, neighbour, cat("is gone: ", progress.why));
      return false;
  }
  return false;
}

Progress RankRing::send_some(Outgoing& out) {
  std::array<iovec, 2> parts;
  size_t n = 0;
  if (out.done < kHeadBytes) parts[n++] = part_of(std::span(out.head).subspan(out.done));
  parts[n++] = part_of(out.payload.subspan(std::max(out.done, kHeadBytes) - kHeadBytes));
  Progress progress = to_next_.stream->write_some(std::span(parts).first(n));
  if (progress.kind == Progress::Kind::kMoved) out.done += progress.bytes;
  return progress;
}

Progress RankRing::receive_some(Incoming& in) {
  const bool had_head = in.has_head();
  Progress progress = from_previous_.stream->read_some(had_head ? in.payload.subspan(in.done - kHeadBytes)
                                                                : std::span(in.head).subspan(in.done));
  if (progress.kind == Progress::Kind::kMoved) {
    in.done += progress.bytes;
    if (!had_head && in.has_head()) read_head(in);
  }
  return progress;
}

void RankRing::read_head(Incoming& in) {
  const auto magic = load_le<uint32_t>(in.head.data());
  const auto number = load_le<uint32_t>(in.head.data() + 4);
  const auto bytes = load_le<uint64_t>(in.head.data() + 8);
  const bool is_order = in.order != nullptr;
  const bool fits = is_order ? bytes > 0 && bytes <= in.most_bytes : bytes == in.payload.size();
  if (magic != kMagic || number != num_received_ || !fits) {
    return fail(ErrorCode::kCorrupt, previous(),
                cat("sent message ", number, " of ", bytes, " bytes",
                    magic == kMagic ? "" : " without the magic number", ", expected message ", num_received_, " of ",
                    is_order ? "up to " : "", is_order ? in.most_bytes : in.payload.size()));
  }
  ++num_received_;
  if (is_order) {
    in.order->resize(bytes);
    in.payload = *in.order;
  }
}

void RankRing::move(Outgoing out, Incoming in) noexcept {
  if (fault_) return;
  if (!out.payload.empty()) {
    store_le(out.head.data(), kMagic);
    store_le(out.head.data() + 4, num_sent_++);
    store_le(out.head.data() + 8, static_cast<uint64_t>(out.payload.size()));
  }
  int slices_waited = 0;
  while (!out.finished() || !in.finished()) {
    std::array<pollfd, 2> ends{{{to_next_.socket.get(), 0, 0}, {from_previous_.socket.get(), 0, 0}}};
    const bool sent = !out.finished() && took(send_some(out), next(), ends[0].events);
    if (fault_) return;
    const bool received = !in.finished() && took(receive_some(in), previous(), ends[1].events);
    if (fault_) return;
    if (sent || received) continue;
    for (pollfd& end : ends) {
      if (end.events == 0) end.fd = -1;  // nothing is waited for there
    }
    // An idle rank waits for its next order until the one before it is gone.
    const bool is_idle = in.order != nullptr && in.done == 0;
    if (poll_until(ends, is_idle ? kNoDeadline : after(limit_seconds_ / kSlices))) continue;
    if (++slices_waited < kSlices) continue;
    return fail(ErrorCode::kTimeout, in.finished() ? next() : previous(),
                cat(in.finished() ? "took nothing for " : "sent nothing for ", limit_seconds_, " s"));
  }
}

void RankRing::exchange(std::span<const std::byte> out, std::span<std::byte> in) noexcept {
  move({.payload = out}, {.payload = in});
}

void RankRing::gather(std::span<const std::span<std::byte>> blocks, bool to_first) noexcept {
  // In round s a rank passes on the block of the rank s before it, which it made or received in the round before.
  // Towards rank 0 a block ends there, and rank 0 sends none.
  const auto block = [&](int32_t rank, int32_t round) -> std::span<std::byte> {
    if (to_first && rank - round < 1) return {};
    return blocks[static_cast<size_t>((rank - round + place_.ranks) % place_.ranks)];
  };
  for (int32_t round = 0; round + 1 < place_.ranks; ++round) {
    exchange(block(place_.rank, round), block(previous(), round));
  }
}

void RankRing::broadcast(std::span<std::byte> data) noexcept {
  if (place_.rank != 0) exchange({}, data);
  if (next() != 0) exchange(data, {});
}

void RankRing::give_order(std::span<const std::byte> message) noexcept { exchange(message, {}); }

bool RankRing::take_order(std::vector<std::byte>& message, size_t most_bytes) noexcept {
  move({}, {.order = &message, .most_bytes = most_bytes});
  if (next() != 0) exchange(message, {});
  return !fault_;
}

}  // namespace headrace::cluster
