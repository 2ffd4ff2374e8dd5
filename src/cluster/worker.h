#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>

#include "cluster/channel.h"
#include "cluster/reception.h"
#include "cluster/worker_session.h"

namespace headrace::cluster {

/// A machine that holds stages for heads: one head at a time; what it has packed for one is kept for the next.
class Worker {
 public:
  /// Listens from here on. Throws Error.
  explicit Worker(WorkerConfig config);
  ~Worker();

  [[nodiscard]] uint16_t port() const noexcept { return reception_->port(); }

 private:
  void welcome(std::unique_ptr<Link> link, const PeerHello& hello);
  /// Of the thread that serves heads, one after the other.
  void serve_heads();
  void serve(Link& control);

  const WorkerConfig config_;
  std::unique_ptr<Network> network_;
  DataKeys keys_;
  NodeMachine machine_;

  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_taken_ = false;  ///< a head is served, or about to be
  bool stop_ = false;
  std::shared_ptr<WorkerSession> session_;  ///< of the head that is served
  Link* control_ = nullptr;                 ///< its link
  Channel<std::unique_ptr<Link>> heads_;
  std::thread server_;
  std::unique_ptr<Reception> reception_;  ///< last: begins when all else is there
};

}  // namespace headrace::cluster
