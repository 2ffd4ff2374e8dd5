#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "cluster/control.h"
#include "cluster/control_messages.h"
#include "cluster/reception.h"

namespace headrace::cluster {

/// A worker that has called (`headrace worker --join`), and may be asked.
struct Caller {
  std::string name;      ///< given by its operator, one of a kind in the cluster
  std::string peer;      ///< where its call came from
  std::string identity;  ///< of its process
  NodeDescription description;
  std::unique_ptr<ControlClient> control;
};

/// Whether a worker may be called so: 1 to 64 letters, digits, '.', '_', '-', and not "head".
[[nodiscard]] bool is_worker_name(std::string_view name) noexcept;

/// What a link is for whose opener is a worker that asks to be taken: "join NAME".
[[nodiscard]] std::string join_purpose(std::string_view name);

/// Where workers call a head that does not call them. A worker that cannot be taken is told why, and calls again later.
/// Threading: every function from any thread.
class JoinDesk {
 public:
  /// Throws Error for what a worker says of itself that no worker of this cluster may.
  using Check = std::function<void(const Caller&)>;
  /// For whom there are places: workers of `names`, in this order, or where it is empty the first `number` that call,
  /// in the order of their names' bytes.
  struct Places {
    std::vector<std::string> names;
    size_t number = 0;
  };
  /// Listens from here on.
  JoinDesk(const std::string& listen, const TlsFiles& tls, const Credentials& mine, Places places, Check check);

  [[nodiscard]] uint16_t port() const noexcept { return reception_->port(); }
  /// Waits until all places are taken by workers that are still there, and tells in the log who has come and how many
  /// are missing. Their names, in the order of the pipeline. Throws Error(kTimeout), who has come and the remedy,
  /// after `seconds`.
  [[nodiscard]] std::vector<std::string> gather(double seconds);
  /// Waits for workers of these names; those that are not there by then.
  [[nodiscard]] std::vector<std::string> missing(const std::vector<std::string>& names, Deadline deadline);
  /// The worker of that name, which is out until release(); nullopt where none is there.
  [[nodiscard]] std::optional<Caller> take(const std::string& name);
  /// The worker that was taken is of no more use: one of that name may call again.
  void release(const std::string& name);

  /// A data connection for `purpose`, opened by the worker that `dial` asks to ("dial" of WorkerSession) with these
  /// words. Throws what `dial` does. kTimeout.
  [[nodiscard]] Result<std::unique_ptr<Link>> fetch(
      const std::function<void(const std::string& announced_as, const std::string& key)>& dial,
      const std::string& purpose, double seconds);

 private:
  void welcome(std::unique_ptr<Link> link, const PeerHello& hello);
  void receive(std::unique_ptr<Link> link, const PeerHello& hello, std::string name);
  /// What keeps a worker of that name from waiting now; empty: nothing. Under the mutex.
  [[nodiscard]] std::string obstacle(const std::string& name) const;
  /// Whether this name was not refused for that reason the last time: whoever calls again and again is logged once.
  [[nodiscard]] bool is_news(const std::string& name, const std::string& why);
  /// Forgets the one of that name that waits, if it does not answer any more.
  void drop_silent(const std::string& name);
  /// Who waits, of those with places.
  [[nodiscard]] std::vector<std::string> present() const;

  const Check check_;
  DataKeys keys_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, Caller> callers_;                  ///< that wait, by name
  Places places_;                                          ///< names once they are known
  std::map<std::string, std::string> refused_;             ///< why, by name
  std::set<std::string> taken_;                            ///< of them, those that are out
  std::map<std::string, std::unique_ptr<Link>> expected_;  ///< data connections by what they are announced as
  uint64_t num_expected_ = 0;
  std::unique_ptr<Reception> reception_;  ///< last: begins when all else is there
};

}  // namespace headrace::cluster
