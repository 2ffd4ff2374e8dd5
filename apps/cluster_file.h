#pragma once

#include <string>
#include <vector>

#include "base/options.h"

namespace headrace {

struct ServeSettings;
struct WorkerSettings;

// Flags are parsed once more after a part was read: they count more.

/// Which file says what the machines of a cluster are, and which of them this one is.
struct ConfigFlags {
  std::string config;
  std::string node;
};
/// `is_worker`: also --node.
[[nodiscard]] std::vector<Option> config_rows(ConfigFlags& flags, bool is_worker);

/// Name of this host; empty where it has none.
[[nodiscard]] std::string host_name();

/// Takes the head's part of settings.file.config, and who the workers are (docs/cluster.md, "One file for all
/// machines"). Throws Error, one line with file, line and what is expected.
void read_head_part(ServeSettings& settings);
/// Takes the part of the worker that settings.file.node or the host's name says.
void read_worker_part(WorkerSettings& settings);

}  // namespace headrace
