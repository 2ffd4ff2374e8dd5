#include "apps/worker_flags.h"

#include "apps/address_check.h"
#include "apps/cluster_flags.h"
#include "apps/load_flags.h"
#include "base/compute_pool.h"
#include "base/error.h"
#include "cluster/join_desk.h"

namespace headrace {
namespace {

std::vector<Option> network_rows(WorkerSettings& s) {
  cluster::TlsFiles& tls = s.config.tls;
  std::vector<Option> rows = {
      {.name = "listen",
       .target = &s.config.listen,
       .value_name = "HOST:PORT",
       .default_text = "127.0.0.1:8100; with --join any free port of all addresses",
       .help = "address for the head and for other workers"},
      {.name = "join",
       .target = &s.config.join,
       .value_name = "HOST:PORT",
       .default_text = "heads call this machine",
       .help = "head to call ('headrace serve MODEL --join-listen'), which then need not reach this machine"},
      {.name = "name",
       .target = &s.config.name,
       .value_name = "NAME",
       .default_text = "the host's",
       .help = "of this machine in the cluster that it joins: says its place in the pipeline, also when it comes back"},
      {.name = "advertise",
       .target = &s.config.advertise,
       .value_name = "HOST:PORT",
       .default_text = "its address on the way to the head",
       .help = "where other workers reach this one, if it joins"},
  };
  const std::vector<Option> links = link_flags(s.config.secret_file, tls.certificate, tls.key, tls.authority);
  rows.insert(rows.end(), links.begin(), links.end());
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
      cpu_list_flag(s.cpu_list),
  };
}

}  // namespace

std::vector<OptionGroup> worker_flags(WorkerSettings& s) {
  return {{"Network", network_rows(s)},
          {"Machine", machine_rows(s)},
          {"One file for all machines", config_rows(s.file, true)}};
}

void complete(WorkerSettings& s) {
  cluster::WorkerConfig& config = s.config;
  const bool has_default = config.listen == WorkerSettings::kDefaultListen;
  if (config.join.empty()) {
    if (!config.name.empty() || !config.advertise.empty()) {
      throw Error(ErrorCode::kInvalidArgument, "--name and --advertise are for a worker that joins; give --join, too");
    }
    if (has_default) config.listen = cluster::WorkerConfig().listen;
  } else {
    check_peer_address("--join", config.join);
    if (!config.advertise.empty()) check_peer_address("--advertise", config.advertise);
    if (has_default) config.listen = "0.0.0.0:0";
    if (config.name.empty()) config.name = host_name();
    if (!cluster::is_worker_name(config.name)) {
      throw Error(ErrorCode::kInvalidArgument, cat("--name '", printable(config.name),
                                                   "': expected 1 to 64 letters, digits, '.', '_' or '-', not 'head'"));
    }
  }
  check_listen_address("--listen", config.listen);
  config.isa = choose_isa(s.isa);
  if (config.threads == 0) config.threads = usable_cpus();
}

}  // namespace headrace
