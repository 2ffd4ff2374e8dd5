#include "apps/cluster_flags.h"

#include <algorithm>

#include "apps/address_check.h"
#include "base/error.h"
#include "cluster/join_desk.h"

namespace headrace {
namespace {

std::vector<std::string> addresses_of(const std::string& list) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= list.size() && !list.empty();) {
    const size_t end = std::min(list.find(',', begin), list.size());
    if (end == begin)
      throw Error(ErrorCode::kInvalidArgument, cat("--workers '", printable(list), "': an empty entry"));
    parts.push_back(list.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

}  // namespace

std::vector<Option> link_flags(std::string& secret_file, std::string& certificate, std::string& key,
                               std::string& authority) {
  return {
      {.name = "secret-file",
       .target = &secret_file,
       .value_name = "FILE",
       .default_text = "no secret, on both sides",
       .help = "secret of at least 16 bytes that head and workers share; it never crosses the network"},
      {.name = "cluster-certfile",
       .target = &certificate,
       .value_name = "FILE",
       .default_text = "no TLS between machines",
       .help = "this machine's certificate chain for links between machines, PEM"},
      {.name = "cluster-keyfile",
       .target = &key,
       .value_name = "FILE",
       .default_text = "none",
       .help = "its private key, PEM"},
      {.name = "cluster-cafile",
       .target = &authority,
       .value_name = "FILE",
       .default_text = "none",
       .help = "who must have signed the certificates of the other machines, PEM"},
  };
}

Option placement_flag(ClusterOptions& options) {
  return {.name = "placement",
          .target = &options.placement,
          .choices = {"speed", "kv"},
          .value_name = "NAME",
          .help = "what counts first when layers are placed: the slowest machine, or room for the KV cache"};
}

Option pipeline_layers_flag(ClusterOptions& options) {
  return {
      .name = "pipeline-layers",
      .target = &options.pipeline_layers,
      .range = {.min = 0, .max = 65536},
      .value_name = "N,N,...",
      .default_text = "by the ability of each machine",
      .help =
          "layers of each machine, the head first; 8.5: eight and the attention of the next; 0 for the head: it holds "
          "none"};
}

Option output_stage_flag(ClusterOptions& options) {
  return {.name = "output-stage",
          .target = &options.output_stage,
          .choices = {"auto", "head", "last"},
          .value_name = "NAME",
          .help =
              "who computes the output projection; auto: whichever makes the slowest machine faster; last: with "
              "--pipeline-layers the last machine, even where it has no layers"};
}

Option wire_dtype_flag(ClusterOptions& options) {
  return {.name = "wire-dtype",
          .target = &options.wire_dtype,
          .choices = {"f32", "bf16", "f16", "int8"},
          .value_name = "TYPE",
          .help = "of activations between machines; only f32 gives the tokens of one machine"};
}

std::vector<Option> ClusterFlags::rows() {
  std::vector<Option> rows = {
      {.name = "workers",
       .target = &workers,
       .value_name = "WORKER,...",
       .default_text = "the model is all on this machine",
       .help = "machines that run 'headrace worker', in the order of the pipeline: the model is spread over them and "
               "this one; HOST:PORT of one that is called, the name of one that joins"},
      {.name = "join-listen",
       .target = &options.join_listen,
       .value_name = "HOST:PORT",
       .default_text = "no worker joins",
       .help = "address for machines that run 'headrace worker --join': where --workers names none of them, the model "
               "is spread over the first of them, too, in the order of their names"},
      {.name = "wait-for-workers",
       .target = &options.wait_for_workers,
       .range = {.min = 1, .max = 65536},
       .help = "with --join-listen, where --workers names none that joins: how many the model is spread over"},
      {.name = "join-timeout",
       .target = &options.join_timeout_seconds,
       .range = {.min = 1, .max = 1e9},
       .value_name = "SECONDS",
       .help = "how long the start waits for them"},
      pipeline_layers_flag(options),
      output_stage_flag(options),
      placement_flag(options),
      wire_dtype_flag(options),
      {.name = "steps-in-flight",
       .target = &options.steps_in_flight,
       .range = {.min = 0, .max = 32},
       .default_text = "found by measuring",
       .help = "steps that are computed at once, over all machines; 0: find them"},
      {.name = "cluster-memory-bytes",
       .target = &options.memory_bytes,
       .range = {.min = 0},
       .value_name = "BYTES",
       .default_text = "most of what is free",
       .help = "that weights, workspace and KV cache may take on this machine, where there are workers"},
      {.name = "rejoin-timeout",
       .target = &options.rejoin_timeout_seconds,
       .range = {.min = 0, .max = 1e9},
       .value_name = "SECONDS",
       .help = "how long running requests wait for a lost worker to come back"},
      {.name = "allow-other-builds",
       .target = &options.allow_other_builds,
       .help = "take workers of another build of this program"},
  };
  const std::vector<Option> links =
      link_flags(options.secret_file, options.certificate, options.key, options.authority);
  rows.insert(rows.begin() + 1, links.begin(), links.end());
  return rows;
}

ClusterOptions ClusterFlags::parsed() const {
  ClusterOptions parsed = options;
  parsed.workers = addresses_of(workers);
  const auto twice = [&](const std::string& address) { return std::ranges::count(parsed.workers, address) > 1; };
  if (const auto found = std::ranges::find_if(parsed.workers, twice); found != parsed.workers.end()) {
    throw Error(ErrorCode::kInvalidArgument, cat("--workers: ", printable(*found), " is named twice; name it once"));
  }
  if (!parsed.is_used() && !parsed.pipeline_layers.empty()) {
    throw Error(ErrorCode::kInvalidArgument,
                "--pipeline-layers says how the model is cut over --workers or those that join (--join-listen)");
  }
  for (const std::string& worker : parsed.workers) {
    if (!ClusterOptions::joins(worker)) {
      check_peer_address("--workers", worker);
    } else if (!cluster::is_worker_name(worker)) {
      throw Error(ErrorCode::kInvalidArgument,
                  cat("--workers: '", printable(worker),
                      "': expected HOST:PORT of one that is called, or the name of one that joins: 1 to 64 letters, "
                      "digits, '.', '_' or '-', not 'head'"));
    }
  }
  if (!parsed.join_listen.empty()) check_listen_address("--join-listen", parsed.join_listen);
  const auto joining = std::ranges::find_if(parsed.workers, ClusterOptions::joins);
  if (joining != parsed.workers.end() && parsed.join_listen.empty()) {
    throw Error(ErrorCode::kInvalidArgument, cat("--workers: ", printable(*joining),
                                                 " has no port, so it is one that joins; say by --join-listen "
                                                 "HOST:PORT where, or give its port"));
  }
  if (joining != parsed.workers.end() && parsed.wait_for_workers != ClusterOptions().wait_for_workers) {
    throw Error(ErrorCode::kInvalidArgument,
                "--wait-for-workers beside names in --workers: those are waited for; leave it out");
  }
  if (parsed.join_listen.empty() && parsed.wait_for_workers != ClusterOptions().wait_for_workers) {
    throw Error(ErrorCode::kInvalidArgument,
                "--wait-for-workers counts those that join; say by --join-listen HOST:PORT where they may");
  }
  if (parsed.join_listen.empty() && parsed.join_timeout_seconds != ClusterOptions().join_timeout_seconds) {
    throw Error(ErrorCode::kInvalidArgument,
                "--join-timeout is for workers that join; say by --join-listen HOST:PORT where they may");
  }
  if (!parsed.is_used()) refuse_unused();
  return parsed;
}

void ClusterFlags::refuse_unused() const {
  ClusterFlags given = *this, untouched;
  const std::vector<Option> rows = given.rows(), defaults = untouched.rows();
  for (size_t i = 0; i < rows.size(); ++i) {
    const bool is_default = std::visit(
        [&](auto* value) { return *value == *std::get<decltype(value)>(defaults[i].target); }, rows[i].target);
    if (is_default) continue;
    throw Error(ErrorCode::kInvalidArgument, cat("--", rows[i].name,
                                                 " is for a model that is spread over machines; say by --workers or "
                                                 "--join-listen over which, or leave it out"));
  }
}

}  // namespace headrace
