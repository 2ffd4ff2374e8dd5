#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "cluster/channel.h"
#include "cluster/link.h"

namespace headrace::cluster {

/// A frame on its way out: the payload is `bytes`, `shared` (which several links may send), and `data`, one after the
/// other.
struct OutFrame {
  FrameHeader header;
  std::vector<std::byte> bytes;
  std::shared_ptr<const std::vector<std::byte>> shared;
  std::vector<float> data;
};

/// Sends frames on a thread of its own, so that whoever makes them goes on at once.
/// Threading: push() and close() from any thread.
class FrameSender {
 public:
  /// `failed` is called once, on the sender's thread, when the link is of no more use; frames after that are dropped.
  FrameSender(Link& link, std::function<void(const Error&)> failed);
  ~FrameSender();

  void push(OutFrame frame) { frames_.push(std::move(frame)); }
  /// Frames that were not sent yet are dropped; a send that waits ends when the link is closed.
  void close() { frames_.close(); }
  /// That the thread has spent in sends, since it began.
  [[nodiscard]] double seconds_sending() const noexcept { return seconds_.load(std::memory_order_relaxed); }

 private:
  void run() noexcept;

  Link& link_;
  std::function<void(const Error&)> failed_;
  Channel<OutFrame> frames_;
  std::atomic<double> seconds_{0};
  std::thread thread_;  // last: begins when all else is there
};

}  // namespace headrace::cluster
