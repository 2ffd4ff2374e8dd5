#pragma once

#include <string>
#include <vector>

#include "apps/cluster_file.h"
#include "apps/cluster_flags.h"
#include "base/options_command_line.h"
#include "headrace/headrace.h"
#include "server/serve_options.h"

namespace headrace {

struct ServeSettings {
  std::string model;
  LoadOptions load;
  ClusterFlags cluster;
  server::ServeOptions serve;
  int32_t port = 8000;
  int32_t grpc_port = -1;  ///< -1: no gRPC
  bool allow_terminate = false;
  std::string template_file;
  std::string trace;  ///< file for the timeline of steps; empty: none
  bool dry_run = false;
  std::string cpu_list;
  ConfigFlags file;
};

/// The flags of `headrace serve`, which write into `settings`.
[[nodiscard]] std::vector<OptionGroup> serve_flags(ServeSettings& settings);

/// The command with these flags, which write into `settings`.
[[nodiscard]] CommandLine serve_command_line(ServeSettings& settings);

}  // namespace headrace
