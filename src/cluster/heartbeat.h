#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "cluster/link.h"

namespace headrace::cluster {

struct HeartbeatLimits {
  double interval_s = 0.25;  ///< between two beats
  double silence_s = 3;      ///< without a beat of the peer, it is lost
};

struct HeartbeatFigures {
  int64_t num_sent = 0, num_answered = 0;
  int64_t num_missed = 0;        ///< intervals of the peer in which nothing was heard
  int64_t num_overslept = 0;     ///< times that this side ran too late to judge the peer
  double min_round_trip_s = 0;   ///< 0 until one was measured
  double mean_round_trip_s = 0;  ///< of the last few: exponentially weighted, 1/8 each
};

/// Watches a peer over a link that carries nothing else, so that no load of the others delays it. Both sides run one.
/// A beat is a kHeartbeat frame of id 2 n; it is answered at once by id 2 n + 1.
class Heartbeat {
 public:
  /// `lost` is called once, on the heartbeat's own thread, when the peer was silent for too long (kTimeout) or the link
  /// ended (kUnavailable); not for stop(). It must not destroy the heartbeat.
  Heartbeat(std::unique_ptr<Link> link, const HeartbeatLimits& limits, std::function<void(const Error&)> lost);
  /// stop(), and waits for the thread.
  ~Heartbeat();
  Heartbeat(const Heartbeat&) = delete;
  Heartbeat& operator=(const Heartbeat&) = delete;

  /// Ends the link. Any thread.
  void stop() noexcept;
  [[nodiscard]] double seconds_since_heard() const noexcept;
  [[nodiscard]] HeartbeatFigures figures() const;
  [[nodiscard]] const std::string& peer() const noexcept { return link_->peer(); }

 private:
  using Time = Deadline;

  void run() noexcept;
  /// Sends beats and takes frames until the link ends or the peer is lost.
  [[nodiscard]] Error watch();
  [[nodiscard]] Result<std::monostate> send(uint64_t id);
  [[nodiscard]] Result<std::monostate> take(const FrameHeader& header, Time now);
  /// Counts what was missed; whether the peer is lost.
  [[nodiscard]] bool judge(Time now, bool overslept);

  std::unique_ptr<Link> link_;
  HeartbeatLimits limits_;
  std::function<void(const Error&)> lost_;
  std::atomic<Time> heard_;
  std::atomic<bool> stopped_{false};
  mutable std::mutex mutex_;
  HeartbeatFigures figures_;
  // Of the thread only.
  uint64_t beat_ = 0;
  Time beat_sent_{};
  Time silent_since_{};        ///< from when silence counts: the last beat heard, or the end of an oversleep
  int64_t missed_so_far_ = 0;  ///< in this silence
  std::thread thread_;         // last: begins when all else is there
};

}  // namespace headrace::cluster
