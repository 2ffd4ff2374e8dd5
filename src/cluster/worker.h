#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>

#include "cluster/channel.h"
#include "cluster/reception.h"
#include "cluster/worker_session.h"

namespace headrace::cluster {

/// A machine that holds stages for heads: one head at a time; what it has packed for one is kept for the next. Heads
/// call it or, where its configuration names a head to join, it calls that one, again and again.
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
  /// Of the thread that calls the head, where there is one to join.
  void call_head();
  /// Until the head that has answered is gone. Why it could not be: in one line.
  [[nodiscard]] Result<std::monostate> call_once();

  WorkerConfig config_;
  const Credentials credentials_;
  std::unique_ptr<Network> network_;
  DataKeys keys_;
  NodeMachine machine_;

  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_taken_ = false;  ///< a head is served, or about to be
  bool stop_ = false;
  std::shared_ptr<WorkerSession> session_;  ///< of the head that is served
  Link* control_ = nullptr;                 ///< its link
  std::string farewell_;                    ///< why the last head has not taken this worker; empty: it has
  Channel<std::unique_ptr<Link>> heads_;
  std::thread server_;
  std::unique_ptr<Reception> reception_;
  std::thread caller_;  ///< last: begins when all else is there
};

}  // namespace headrace::cluster
