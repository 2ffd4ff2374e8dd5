#include "cluster/control_messages.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "cluster/message_fields.h"

namespace headrace::cluster {
namespace {

constexpr int64_t kMostSteps = int64_t{1} << 20;

DType read_kv_dtype(const nlohmann::json& json) {
  const int64_t value = read_integer(json, "kv_dtype", 0, 255);
  for (const DType dtype : kKvDTypes) {
    if (static_cast<int64_t>(dtype) == value) return dtype;
  }
  throw Error(ErrorCode::kCorrupt, cat("kv_dtype: ", value, " is no type of a KV cache"));
}

}  // namespace

nlohmann::json to_json(const NodeDescription& d) {
  return {{"build", d.build},     {"isa", d.isa},
          {"threads", d.threads}, {"memory_bytes", d.memory_bytes},
          {"recipes", d.recipes}, {"data_address", d.data_address}};
}

NodeDescription read_description(const nlohmann::json& json) {
  NodeDescription description{.build = read_text(json, "build", 256),
                              .isa = read_text(json, "isa", 16),
                              .threads = static_cast<int32_t>(read_integer(json, "threads", 1, 1 << 16)),
                              .memory_bytes = read_integer(json, "memory_bytes", 0, int64_t{1} << 60),
                              .data_address = read_text(json, "data_address", 512),
                              .recipes = {}};
  const nlohmann::json& recipes = read_array(json, "recipes", kAllNumerics.size(), kAllNumerics.size());
  for (size_t i = 0; i < recipes.size(); ++i) description.recipes[i] = as_text(recipes[i], "recipes", 1024);
  return description;
}

nlohmann::json to_json(const NodeCosts& costs) {
  nlohmann::json at = nlohmann::json::array();
  for (const UnitSeconds& seconds : costs.at) {
    at.push_back({{"rows", seconds.rows},
                  {"attention", seconds.attention_seconds},
                  {"feed_forward", seconds.feed_forward_seconds},
                  {"output", seconds.output_seconds}});
  }
  return {{"at", at},
          {"attention_bytes", costs.probe_bytes.attention},
          {"feed_forward_bytes", costs.probe_bytes.feed_forward},
          {"fixed", costs.fixed_seconds}};
}

NodeCosts read_costs(const nlohmann::json& json) {
  constexpr double kMostSeconds = 1e6;
  constexpr int64_t kMostBytes = int64_t{1} << 50;
  NodeCosts costs{.at = {},
                  .probe_bytes = {.attention = read_integer(json, "attention_bytes", 1, kMostBytes),
                                  .feed_forward = read_integer(json, "feed_forward_bytes", 1, kMostBytes)},
                  .fixed_seconds = read_number(json, "fixed", 0, kMostSeconds)};
  for (const nlohmann::json& at : read_array(json, "at", 1, 64)) {
    costs.at.push_back({.rows = static_cast<int32_t>(read_integer(at, "rows", 1, kMostSteps)),
                        .attention_seconds = read_number(at, "attention", 0, kMostSeconds),
                        .feed_forward_seconds = read_number(at, "feed_forward", 0, kMostSeconds),
                        .output_seconds = read_number(at, "output", 0, kMostSeconds)});
  }
  return costs;
}

nlohmann::json to_json(const ComputeRules& rules) {
  return {{"numerics", numerics_name(rules.numerics)},
          {"kv_dtype", static_cast<int>(rules.kv_dtype)},
          {"max_step_tokens", rules.max_step_tokens}};
}

ComputeRules read_compute_rules(const nlohmann::json& json) {
  const std::string numerics = read_text(json, "numerics", 32);
  const std::optional<Numerics> parsed = parse_numerics(numerics);
  if (!parsed) throw Error(ErrorCode::kUnsupported, cat("numerics: '", printable(numerics), "' is not known here"));
  return {.numerics = *parsed,
          .kv_dtype = read_kv_dtype(json),
          .max_step_tokens = static_cast<int32_t>(read_integer(json, "max_step_tokens", 1, 1 << 16))};
}

nlohmann::json to_json(const StageUnits& units) {
  return {{"embedding", units.embedding},
          {"first_sublayer", units.first_sublayer},
          {"end_sublayer", units.end_sublayer},
          {"output", units.output}};
}

StageUnits read_units(const nlohmann::json& json, int32_t num_layers) {
  const int32_t all = kSublayers * num_layers;
  const auto first = static_cast<int32_t>(read_integer(json, "first_sublayer", 0, all));
  const StageUnits units{.embedding = read_bool(json, "embedding"),
                         .first_sublayer = first,
                         .end_sublayer = static_cast<int32_t>(read_integer(json, "end_sublayer", first, all)),
                         .output = read_bool(json, "output")};
  if (!units.embedding && units.num_sublayers() == 0 && !units.output) {
    throw Error(ErrorCode::kCorrupt, "a stage without units");
  }
  return units;
}

nlohmann::json to_json(const StageRules& rules) {
  return {{"group_blocks", rules.group_blocks},
          {"max_seq_len", rules.max_seq_len},
          {"gather_outputs", rules.gather_outputs}};
}

StageRules read_stage_rules(const nlohmann::json& json, const ArchSpec& spec) {
  const size_t num_groups = spec.cache_groups.size();
  StageRules rules{.group_blocks = {},
                   .max_seq_len = static_cast<int32_t>(read_integer(json, "max_seq_len", 1, spec.max_positions)),
                   .gather_outputs = read_bool(json, "gather_outputs")};
  for (const nlohmann::json& blocks : read_array(json, "group_blocks", num_groups, num_groups)) {
    rules.group_blocks.push_back(static_cast<int32_t>(as_integer(blocks, "group_blocks", 1, 1 << 30)));
  }
  return rules;
}

}  // namespace headrace::cluster
