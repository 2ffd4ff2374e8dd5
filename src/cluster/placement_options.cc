#include "cluster/placement_options.h"

#include <algorithm>

#include "base/error.h"
#include "cluster/activation_codec.h"

namespace headrace::cluster {

PlacementOptions placement_options(const ClusterOptions& wishes, const ModelUnits& model, size_t nodes,
                                   const ServingLimits& limits, const PredictedLoad& load) {
  const std::optional<WireDtype> wire = find_wire_dtype(wishes.wire_dtype);
  if (!wire) throw Error(ErrorCode::kInvalidArgument, cat("--wire-dtype '", printable(wishes.wire_dtype), "'"));
  PlacementOptions options{
      .max_step_tokens = limits.max_step_tokens,
      .max_model_len = limits.max_model_len,
      .max_num_seqs = limits.max_num_seqs,
      .kv_limit_bytes = limits.kv_cache_bytes,
      .token_bytes = activation_payload_bytes(1, model.hidden, *wire) - static_cast<int64_t>(kActivationPrefixBytes),
      .prefer_kv = wishes.placement == "kv",
      .layers = wishes.pipeline_layers};
  if (wishes.output_stage != "auto") options.output_on_head = wishes.output_stage == "head";
  options.output_rows = std::clamp(load.clients_of(nodes) / static_cast<int32_t>(nodes), 1, limits.max_step_tokens);
  const double tokens = options.output_rows * (1 + static_cast<double>(load.prompt_tokens) / load.output_tokens);
  options.rows = static_cast<int32_t>(std::min<double>(tokens, limits.max_step_tokens));
  return options;
}

}  // namespace headrace::cluster
