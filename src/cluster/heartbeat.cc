#include "cluster/heartbeat.h"

#include <algorithm>

namespace headrace::cluster {
namespace {

using Clock = std::chrono::steady_clock;

double seconds(Clock::duration duration) { return std::chrono::duration<double>(duration).count(); }
Clock::duration duration(double seconds) {
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

}  // namespace

Heartbeat::Heartbeat(std::unique_ptr<Link> link, const HeartbeatLimits& limits, std::function<void(const Error&)> lost)
    : link_(std::move(link)),
      limits_(limits),
      lost_(std::move(lost)),
      heard_(Clock::now()),
      silent_since_(heard_.load()),
      thread_([this] { run(); }) {}

Heartbeat::~Heartbeat() {
  stop();
  thread_.join();
}

void Heartbeat::stop() noexcept {
  stopped_.store(true);
  link_->close();
}

double Heartbeat::seconds_since_heard() const noexcept { return seconds(Clock::now() - heard_.load()); }

HeartbeatFigures Heartbeat::figures() const {
  const std::lock_guard lock(mutex_);
  return figures_;
}

void Heartbeat::run() noexcept {
  const Error end = watch();
  link_->close();
  if (!stopped_.load()) lost_(end);
}

Error Heartbeat::watch() {
  std::vector<std::byte> payload;
  Time next_beat = Clock::now();
  Time was_awake = next_beat;
  while (true) {
    if (Clock::now() >= next_beat) {
      if (const auto sent = send(2 * ++beat_); !sent) return sent.error();
      beat_sent_ = Clock::now();
      next_beat = beat_sent_ + duration(limits_.interval_s);
    }
    const Result<FrameHeader> frame = link_->receive(payload, next_beat);
    const Time now = Clock::now();
    // This thread itself ran so late that beats may wait in the socket, or that the peer may have been stopped along
    // with it: the silence then says nothing.
    const bool overslept = now - was_awake > duration(limits_.interval_s + limits_.silence_s / 2);
    was_awake = now;
    if (frame) {
      if (const auto taken = take(frame.value(), now); !taken) return taken.error();
    } else if (frame.error().code() != ErrorCode::kTimeout) {
      return frame.error();
    }
    if (judge(now, overslept)) {
      return Error(ErrorCode::kTimeout,
                   cat(link_->peer(), ": no heartbeat for ", limits_.silence_s, " s: stopped, or cut off"));
    }
  }
}

Result<std::monostate> Heartbeat::send(uint64_t id) {
  // A peer that takes no beat is as silent as one that sends none.
  const Time deadline = Clock::now() + duration(limits_.silence_s);
  const auto sent = link_->send({.kind = FrameKind::kHeartbeat, .id = id}, {}, deadline);
  if (sent && id % 2 == 0) {
    const std::lock_guard lock(mutex_);
    ++figures_.num_sent;
  }
  return sent;
}

Result<std::monostate> Heartbeat::take(const FrameHeader& header, Time now) {
  if (header.kind != FrameKind::kHeartbeat)
    return Error(ErrorCode::kCorrupt, cat(link_->peer(), ": a frame on the heartbeat's link that is none"));
  heard_.store(now);
  silent_since_ = now;
  missed_so_far_ = 0;
  if (header.id % 2 == 0) return send(header.id + 1);
  const std::lock_guard lock(mutex_);
  ++figures_.num_answered;
  if (header.id != 2 * beat_ + 1) return std::monostate{};  // to an earlier beat, after the next was sent
  const double round_trip = seconds(now - beat_sent_);
  const bool first = figures_.min_round_trip_s == 0;
  figures_.min_round_trip_s = first ? round_trip : std::min(figures_.min_round_trip_s, round_trip);
  figures_.mean_round_trip_s += (round_trip - figures_.mean_round_trip_s) / (first ? 1 : 8);
  return std::monostate{};
}

bool Heartbeat::judge(Time now, bool overslept) {
  if (overslept) {
    silent_since_ = now;
    missed_so_far_ = 0;
    const std::lock_guard lock(mutex_);
    ++figures_.num_overslept;
    return false;
  }
  const double silence = seconds(now - silent_since_);
  // One interval passes between two beats; a missed one makes it two.
  const auto missed = std::max<int64_t>(static_cast<int64_t>(silence / limits_.interval_s) - 1, 0);
  if (missed > missed_so_far_) {
    const std::lock_guard lock(mutex_);
    figures_.num_missed += missed - missed_so_far_;
    missed_so_far_ = missed;
  }
  return silence >= limits_.silence_s;
}

}  // namespace headrace::cluster
