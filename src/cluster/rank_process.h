#pragma once

#include <sys/types.h>

#include <future>
#include <string>
#include <thread>

#include "cluster/rank_links.h"

namespace headrace::cluster {

/// A process of this machine that runs a rank: `PROGRAM rank --rank R --ranks N`, which finds its descriptors at fixed
/// numbers. Signals of the terminal and SIGTERM do not reach it: it ends when this object does, or this process, even
/// while it is stopped.
class RankProcess {
 public:
  /// Throws Error(kUnavailable) where the program cannot be started.
  RankProcess(const std::string& program, RankPlace place, const RankDescriptors& descriptors);
  ~RankProcess();
  RankProcess(const RankProcess&) = delete;
  RankProcess& operator=(const RankProcess&) = delete;

  [[nodiscard]] pid_t id() const noexcept { return id_; }
  /// "process 71 was ended by signal 9"; empty while it runs, for which a process whose sockets have just closed may be
  /// waited for a second.
  [[nodiscard]] std::string end();

 private:
  /// 0, or the system's error.
  [[nodiscard]] int start(const std::string& program, RankPlace place, const RankDescriptors& descriptors, int life);

  pid_t id_ = 0;
  Descriptor life_;  // the other process ends when nobody has this end of a pipe
  std::string end_;
  std::promise<void> done_;
  std::thread starter_;  // started the process, and lives as long as this object
};

/// In the process of a rank: its descriptors. From now on the process ends as soon as the one that started it has.
/// Once. Throws Error(kInvalidArgument) in a process that was not started as above.
[[nodiscard]] RankDescriptors inherited_rank_descriptors();

}  // namespace headrace::cluster
