#include "apps/cluster_flags.h"

#include <algorithm>
#include <charconv>

#include "base/error.h"

namespace headrace {
namespace {

std::vector<std::string> split(const std::string& list, const char* flag) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= list.size() && !list.empty();) {
    const size_t end = std::min(list.find(',', begin), list.size());
    if (end == begin) throw Error(ErrorCode::kInvalidArgument, cat(flag, " '", printable(list), "': an empty entry"));
    parts.push_back(list.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

int32_t layers_of(const std::string& text, const std::string& list) {
  int32_t layers = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), layers);
  if (code != std::errc{} || end != text.data() + text.size() || layers < 0) {
    throw Error(ErrorCode::kInvalidArgument, cat("--pipeline-layers '", printable(list), "': '", printable(text),
                                                 "' is not a number of layers; expected one for each machine, the "
                                                 "head first, as in 10,12,10"));
  }
  return layers;
}

}  // namespace

std::vector<Option> ClusterFlags::rows() {
  return {
      {.name = "workers",
       .target = &workers,
       .value_name = "HOST:PORT,...",
       .default_text = "the model is all on this machine",
       .help = "machines that run 'headrace worker', in the order of the pipeline: the model is spread over them and "
               "this one"},
      {.name = "secret-file",
       .target = &options.secret_file,
       .value_name = "FILE",
       .default_text = "no secret, on both sides",
       .help = "secret of at least 16 bytes that head and workers share; it never crosses the network"},
      {.name = "cluster-certfile",
       .target = &options.certificate,
       .value_name = "FILE",
       .default_text = "no TLS between machines",
       .help = "this machine's certificate chain for links between machines, PEM"},
      {.name = "cluster-keyfile",
       .target = &options.key,
       .value_name = "FILE",
       .default_text = "none",
       .help = "its private key, PEM"},
      {.name = "cluster-cafile",
       .target = &options.authority,
       .value_name = "FILE",
       .default_text = "none",
       .help = "who must have signed the certificates of the other machines, PEM"},
      {.name = "pipeline-layers",
       .target = &pipeline_layers,
       .value_name = "N,N,...",
       .default_text = "by the measured ability of each machine",
       .help = "layers of each machine, this one first; 0 for this one: it holds none"},
      {.name = "output-stage",
       .target = &options.output_stage,
       .choices = {"auto", "head", "last"},
       .value_name = "NAME",
       .help = "who computes the output projection; auto: whichever makes the slowest machine faster"},
      {.name = "placement",
       .target = &options.placement,
       .choices = {"speed", "kv"},
       .value_name = "NAME",
       .help = "what counts first when layers are placed: the slowest machine, or room for the KV cache"},
      {.name = "wire-dtype",
       .target = &options.wire_dtype,
       .choices = {"f32", "bf16", "f16", "int8"},
       .value_name = "TYPE",
       .help = "of activations between machines; only f32 gives the tokens of one machine"},
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
       .range = {.min = 0},
       .value_name = "SECONDS",
       .help = "how long running requests wait for a lost worker to come back"},
      {.name = "allow-other-builds",
       .target = &options.allow_other_builds,
       .help = "take workers of another build of this program"},
  };
}

ClusterOptions ClusterFlags::parsed() const {
  ClusterOptions parsed = options;
  parsed.workers = split(workers, "--workers");
  for (const std::string& text : split(pipeline_layers, "--pipeline-layers")) {
    parsed.pipeline_layers.push_back(layers_of(text, pipeline_layers));
  }
  if (parsed.workers.empty() && !parsed.pipeline_layers.empty()) {
    throw Error(ErrorCode::kInvalidArgument, "--pipeline-layers says how the model is cut over --workers; name these");
  }
  return parsed;
}

}  // namespace headrace
