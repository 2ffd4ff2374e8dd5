#pragma once

#include <string>
#include <vector>

#include "apps/cluster_file.h"
#include "base/options_command_line.h"
#include "cluster/worker.h"

namespace headrace {

/// What `headrace worker` is told; complete() fills in what depends on other flags.
struct WorkerSettings {
  cluster::WorkerConfig config{.listen = kDefaultListen, .threads = 0};
  std::string isa;
  std::string cpu_list;
  ConfigFlags file;

  /// --listen where it was not given.
  static constexpr const char* kDefaultListen = "default";
};

/// The flags of `headrace worker`, which write into `settings`.
[[nodiscard]] std::vector<OptionGroup> worker_flags(WorkerSettings& settings);

/// Throws Error(kInvalidArgument) for what does not go together.
void complete(WorkerSettings& settings);

}  // namespace headrace
