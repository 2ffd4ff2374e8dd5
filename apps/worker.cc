// headrace worker: holds part of a model for a server on another machine.
#include "cluster/worker.h"

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>

#include "apps/commands.h"
#include "apps/end_signals.h"
#include "base/compute_pool.h"
#include "base/options_command_line.h"

namespace headrace {
namespace {

struct WorkerSettings {
  cluster::WorkerConfig config;
  std::string isa;
};

std::vector<Option> network_rows(WorkerSettings& s) {
  return {
      {.name = "listen",
       .target = &s.config.listen,
       .value_name = "HOST:PORT",
       .help = "address for the head and for other workers"},
      {.name = "secret-file",
       .target = &s.config.secret_file,
       .value_name = "FILE",
       .default_text = "no secret, on both sides",
       .help = "secret of at least 16 bytes that head and workers share; it never crosses the network"},
      {.name = "cluster-certfile",
       .target = &s.config.tls.certificate,
       .value_name = "FILE",
       .default_text = "no TLS between machines",
       .help = "this machine's certificate chain, PEM"},
      {.name = "cluster-keyfile",
       .target = &s.config.tls.key,
       .value_name = "FILE",
       .default_text = "none",
       .help = "its private key, PEM"},
      {.name = "cluster-cafile",
       .target = &s.config.tls.authority,
       .value_name = "FILE",
       .default_text = "none",
       .help = "who must have signed the certificates of the other machines, PEM"},
  };
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
      {.name = "isa",
       .target = &s.isa,
       .choices = {"ref", "avx2", "avx512", "amx"},
       .value_name = "NAME",
       .default_text = "$HEADRACE_ISA, else the best that the machine has",
       .help = "highest instruction set used"},
      {.name = "threads",
       .letter = 't',
       .target = &s.config.threads,
       .range = {.min = 0, .max = 1024},
       .default_text = "one for each usable CPU",
       .help = "compute threads; 0: choose"},
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
