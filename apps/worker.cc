// headrace worker: holds part of a model for a server on another machine.
#include "cluster/worker.h"

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>

#include "apps/cluster_flags.h"
#include "apps/commands.h"
#include "apps/end_signals.h"
#include "apps/load_flags.h"
#include "base/compute_pool.h"
#include "base/options_command_line.h"

namespace headrace {
namespace {

struct WorkerSettings {
  cluster::WorkerConfig config;
  std::string isa;
};

std::vector<Option> network_rows(WorkerSettings& s) {
  cluster::TlsFiles& tls = s.config.tls;
  std::vector<Option> rows = link_flags(s.config.secret_file, tls.certificate, tls.key, tls.authority);
  rows.insert(rows.begin(), {.name = "listen",
                             .target = &s.config.listen,
                             .value_name = "HOST:PORT",
                             .help = "address for the head and for other workers"});
  return rows;
}

std::vector<Option> machine_rows(WorkerSettings& s) {
  return {
      {.name = "model",
       .target = &s.config.model,
       .value_name = "MODEL",
       .default_text = "its part comes from the head",
       .help = "a copy of the model on this machine, used where it is the head's model"},
      {.name = "memory-bytes",
       .target = &s.config.memory_bytes,
       .range = {.min = 0},
       .value_name = "BYTES",
       .default_text = "most of what is free",
       .help = "that weights, workspace and KV cache may take"},
      {.name = "disk-bytes",
       .target = &s.config.disk_bytes,
       .range = {.min = 0},
       .value_name = "BYTES",
       .default_text = "no limit",
       .help =
           "of $HEADRACE_CACHE (else ~/.cache/headrace) for parts of models that heads have sent; what was not used "
           "for longest gives way"},
      isa_flag(s.isa),
      threads_flag(s.config.threads),
  };
}

}  // namespace

int command_worker(std::span<const std::string> arguments) {
  WorkerSettings s;
  s.config.threads = 0;
  const CommandLine command("headrace worker",
                            "Holds part of a model for a head, 'headrace serve MODEL --workers HOST:PORT', and "
                            "computes its layers. Needs no model of its own. Ctrl-C and SIGTERM end it.",
                            {}, {{"Network", network_rows(s)}, {"Machine", machine_rows(s)}});
  if (command.parse(arguments) == CommandLine::Outcome::kHelp) {
    std::fputs(command.help().c_str(), stdout);
    return 0;
  }
  setenv("HEADRACE_LOG", "info", 0);  // who comes and goes is what there is to tell
  s.config.isa = choose_isa(s.isa);
  if (s.config.threads == 0) s.config.threads = usable_cpus();
  const EndSignals signals;
  const cluster::Worker worker(s.config);
  fmt::print(stderr, "worker: listening on port {}\n", worker.port());
  while (!signals.wait(std::chrono::hours(1))) {
  }
  return 0;
}

}  // namespace headrace
