// headrace worker: holds part of a model for a server on another machine.
#include "cluster/worker.h"

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>

#include "apps/commands.h"
#include "apps/cpu_list.h"
#include "apps/end_signals.h"
#include "apps/worker_flags.h"
#include "base/error.h"

namespace headrace {

int command_worker(std::span<const std::string> arguments) {
  WorkerSettings s;
  const CommandLine command("headrace worker",
                            "Holds part of a model for a head, 'headrace serve MODEL --workers HOST:PORT', or for the "
                            "head that it joins, and computes its layers. Needs no model of its own. Ctrl-C and "
                            "SIGTERM end it once what it computes is done; a second one ends it at once.",
                            {}, worker_flags(s));
  if (command.parse(arguments) == CommandLine::Outcome::kHelp) {
    std::fputs(command.help().c_str(), stdout);
    return 0;
  }
  if (!s.file.config.empty()) {
    read_worker_part(s);
    (void)command.parse(arguments);  // flags count more than the file
  } else if (!s.file.node.empty()) {
    throw Error(ErrorCode::kInvalidArgument, "--node names a worker of a file; give that by --config");
  }
  setenv("HEADRACE_LOG", "info", 0);  // who comes and goes is what there is to tell
  bind_to_cpus(s.cpu_list);
  complete(s);
  const EndSignals signals;
  EndGuard end(signals);
  const cluster::Worker worker(s.config);
  fmt::print(stderr, "worker: listening on port {}\n", worker.port());
  if (!s.config.join.empty()) fmt::print(stderr, "worker: joins {} as {}\n", s.config.join, s.config.name);
  while (!signals.wait(std::chrono::hours(1))) {
  }
  end.begin();
  return 0;
}

}  // namespace headrace
