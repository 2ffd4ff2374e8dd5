#include "cluster/link_meter.h"

#include <algorithm>
#include <array>

#include "cluster/named_error.h"

namespace headrace::cluster {
namespace {

constexpr int kEchoes = 20;
constexpr size_t kFirstRoundBytes = 32 << 10;
/// With the rounds before it a quarter of a megabyte: a start that has no part of the model to send sends little.
constexpr size_t kLastRoundBytes = 128 << 10;
constexpr double kMaxSeconds = 0.3;
constexpr size_t kFrameBytes = 64 << 10;
/// Ids of echoes: the last one ends the measuring.
constexpr uint64_t kEcho = 1;
constexpr uint64_t kEnd = 2;

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

/// Measures. Throws Error, so that the steps read one after the other.
class Meter {
 public:
  Meter(Link& link, Deadline deadline) : link_(link), deadline_(deadline) {}

  LinkMeasure measure() {
    LinkMeasure measure{.round_trip_s = echo(kEcho)};
    for (int i = 1; i < kEchoes; ++i) measure.round_trip_s = std::min(measure.round_trip_s, echo(kEcho));
    const auto begin = Clock::now();
    // Each round is measured by itself, so that the last and longest, with the connection at its pace, counts; on a
    // slow link no more waits in the system's buffers than a round.
    for (size_t bytes = kFirstRoundBytes; bytes <= kLastRoundBytes; bytes *= 2) {
      const double seconds = send_round(bytes);
      // The echo's way back is no part of it. A clock's hiccup may leave nothing: the whole is an honest bound then.
      const double net = seconds > 2 * measure.round_trip_s ? seconds - measure.round_trip_s : seconds;
      measure.bytes_per_s = static_cast<double>(bytes) / net;
      if (seconds_since(begin) + 2 * seconds > kMaxSeconds) break;
    }
    (void)echo(kEnd);
    return measure;
  }

 private:
  void send(const FrameHeader& header, std::span<const std::span<const std::byte>> parts) {
    if (const auto sent = link_.send(header, parts, deadline_); !sent) throw Error(sent.error());
  }

  /// Seconds until an empty frame is back.
  double echo(uint64_t id) {
    const auto begin = Clock::now();
    send({.kind = FrameKind::kHeartbeat, .id = id}, {});
    const Result<FrameHeader> back = link_.receive(payload_, deadline_);
    if (!back) throw Error(back.error());
    if (back.value().kind != FrameKind::kHeartbeat || back.value().id != id)
      throw Error(ErrorCode::kCorrupt, "a frame that is no echo, while the link was measured");
    return seconds_since(begin);
  }

  double send_round(size_t bytes) {
    const auto begin = Clock::now();
    for (size_t left = bytes; left > 0; left -= std::min(left, kFrameBytes)) {
      const std::array parts{std::span<const std::byte>(data_).first(std::min(left, kFrameBytes))};
      send({.kind = FrameKind::kBytes}, parts);
    }
    (void)echo(kEcho);
    return seconds_since(begin);
  }

  Link& link_;
  Deadline deadline_;
  std::vector<std::byte> data_{kFrameBytes};
  std::vector<std::byte> payload_;
};

}  // namespace

Result<LinkMeasure> measure_link(Link& link, const std::string& from, Deadline deadline) {
  try {
    return Meter(link, deadline).measure();
  } catch (const Error& error) {
    return named_error(cat("measuring the link from ", from, " to ", link.peer()), error);
  }
}

Result<std::monostate> answer_measuring(Link& link, Deadline deadline) {
  std::vector<std::byte> payload;
  while (true) {
    const Result<FrameHeader> frame = link.receive(payload, deadline);
    if (!frame) return frame.error();
    if (frame.value().kind == FrameKind::kBytes) continue;
    if (frame.value().kind != FrameKind::kHeartbeat)
      return Error(ErrorCode::kCorrupt, cat(link.peer(), ": sent something else while the link was measured"));
    const auto sent = link.send({.kind = FrameKind::kHeartbeat, .id = frame.value().id}, {}, deadline);
    if (!sent || frame.value().id == kEnd) return sent;
  }
}

}  // namespace headrace::cluster
