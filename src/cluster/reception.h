#pragma once

#include <condition_variable>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <thread>

#include "cluster/handshake.h"
#include "cluster/link.h"

namespace headrace::cluster {

/// Peers whose handshake is not done that are served at once; one more takes the place of one of them.
inline constexpr int kMaxUnknownPeers = 64;

/// Accepts connections and hands over those whose peer has proven who it is, each with a thread of its own until then:
/// whoever is slow, silent or hostile keeps nobody else waiting, however many connections it makes.
class Reception {
 public:
  /// Called for each link, on its own thread; must not block for long, and not throw.
  using Welcome = std::function<void(std::unique_ptr<Link>, PeerHello)>;
  /// `keys` (null: no data connections) must outlive it. A peer has `limit_s` for its handshake.
  Reception(std::unique_ptr<Listener> listener, Credentials mine, DataKeys* keys, Welcome welcome,
            double limit_s = kHandshakeSeconds);
  /// Ends what has begun; nobody is welcomed after it.
  ~Reception();
  Reception(const Reception&) = delete;
  Reception& operator=(const Reception&) = delete;

  [[nodiscard]] uint16_t port() const noexcept { return listener_->port(); }

 private:
  struct Visit {
    std::unique_ptr<Link> link;  ///< moved out, under the mutex, once its peer is known
    std::thread thread;
    bool is_sent_away = false;  ///< a newcomer gets its place
    bool done = false;
  };

  void run() noexcept;
  /// Waits until there is room for one who has come, and sees to it; false where the reception closes.
  [[nodiscard]] bool make_room();
  /// Ends the visit whose place a newcomer gets, if there is one. Under the mutex.
  void send_one_away();
  void receive(Visit& visit) noexcept;
  void report(const Error& error, const Visit& visit);

  std::unique_ptr<Listener> listener_;
  Credentials mine_;
  DataKeys* keys_;
  Welcome welcome_;
  double limit_s_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::list<Visit> visits_;
  Deadline next_report_{};
  int64_t num_unreported_ = 0;  ///< refused since the last line of the log about one
  bool closing_ = false;
  std::thread thread_;  // last: begins when all else is there
};

}  // namespace headrace::cluster
