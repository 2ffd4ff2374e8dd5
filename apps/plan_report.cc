#include "apps/plan_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"

namespace headrace {
namespace {

using Json = nlohmann::ordered_json;

double megabytes(int64_t bytes) { return static_cast<double>(bytes) / 1e6; }

/// Each node's share of the figures that exist only for those that are used; 0 for the others.
std::vector<double> spread_over_nodes(const PlanFindings& f, const std::vector<double>& of_used) {
  std::vector<double> all;
  size_t used = 0;
  for (const cluster::NodeShare& share : f.placement.nodes) all.push_back(share.is_used() ? of_used[used++] : 0);
  return all;
}

std::string loss_text(const PlanFindings& f, const cluster::NodeLoss& loss, std::optional<double> rate) {
  const std::string name = printable(f.nodes[static_cast<size_t>(loss.node)].offer.name);
  if (!loss.rest) return cat("without ", name, ": the other nodes cannot hold the model\n");
  return fmt::format("without {}: {} KV tokens left, slowest node {:.3g} ms, {}\n", name, loss.rest->kv_tokens,
                     loss.rest->slowest_seconds * 1e3,
                     rate ? fmt::format("{:.1f} output tokens/s", *rate) : "too few for a request");
}

}  // namespace

std::string units_text(const StageUnits& units) {
  std::string text = units.embedding ? "embedding" : "";
  const auto add = [&](const std::string& part) { text += cat(text.empty() ? "" : ", ", part); };
  if (units.num_sublayers() > 0) add(layers_text(units));
  if (units.output) add("output");
  return text.empty() ? "nothing" : text;
}

std::string plan_text(const PlanFindings& f) {
  const std::vector<double> busy = spread_over_nodes(f, f.prediction.stage_busy);
  const std::vector<double> link_busy = spread_over_nodes(f, f.prediction.link_busy);
  std::string text =
      "| node | units | weights MB | KV MB | workspace MB | of MB | step ms | busy | sends B/token | link busy |\n"
      "|---|---|---:|---:|---:|---:|---:|---:|---:|---:|\n";
  for (size_t i = 0; i < f.nodes.size(); ++i) {
    const cluster::NodeShare& share = f.placement.nodes[i];
    text += fmt::format("| {} | {} | {:.1f} | {:.1f} | {:.1f} | {:.1f} | {:.3g} | {:.1f} % | {} | {:.1f} % |\n",
                        printable(f.nodes[i].offer.name), units_text(share.units), megabytes(share.weight_bytes),
                        megabytes(share.kv_bytes), megabytes(share.workspace_bytes),
                        megabytes(f.nodes[i].offer.memory_bytes), share.compute_seconds * 1e3, 100 * busy[i],
                        cluster::link_token_bytes(f.units, f.placement, f.options, i), 100 * link_busy[i]);
  }
  const LoadFigures& load = f.prediction.load;
  text += fmt::format(
      "\n{} clients, {} tokens in and {} out each time: {:.1f} output tokens/s, first token after {:.0f} ms, then one "
      "each {:.1f} ms\n{:.1f} steps in flight of {:.1f} rows; {} KV tokens\n{}\n",
      f.load.clients, f.load.prompt_tokens, f.load.output_tokens, load.output_rate, load.ttft.median * 1e3,
      load.tpot.median * 1e3, f.prediction.steps_in_flight, f.prediction.step_rows, f.placement.kv_tokens,
      f.placement.reason);
  if (!f.losses.empty()) text += '\n';
  for (size_t i = 0; i < f.losses.size(); ++i) text += loss_text(f, f.losses[i], f.loss_rates[i]);
  return text;
}

nlohmann::ordered_json plan_json(const PlanFindings& f) {
  const std::vector<double> busy = spread_over_nodes(f, f.prediction.stage_busy);
  const std::vector<double> link_busy = spread_over_nodes(f, f.prediction.link_busy);
  Json nodes = Json::array();
  for (size_t i = 0; i < f.nodes.size(); ++i) {
    const cluster::NodeShare& share = f.placement.nodes[i];
    nodes.push_back({{"name", f.nodes[i].offer.name},
                     {"embedding", share.units.embedding},
                     {"first_layer", in_layers(share.units.first_sublayer)},
                     {"layers", in_layers(share.units.num_sublayers())},
                     {"output", share.units.output},
                     {"weight_bytes", share.weight_bytes},
                     {"workspace_bytes", share.workspace_bytes},
                     {"kv_bytes", share.kv_bytes},
                     {"memory_bytes", f.nodes[i].offer.memory_bytes},
                     {"kv_tokens", share.kv_tokens},
                     {"step_seconds", share.compute_seconds},
                     {"transfer_seconds", share.transfer_seconds},
                     {"busy", busy[i]},
                     {"link_bytes_per_token", cluster::link_token_bytes(f.units, f.placement, f.options, i)},
                     {"link_busy", link_busy[i]}});
  }
  Json losses = Json::array();
  for (size_t i = 0; i < f.losses.size(); ++i) {
    const cluster::NodeLoss& loss = f.losses[i];
    Json row{{"node", f.nodes[static_cast<size_t>(loss.node)].offer.name}, {"survives", loss.rest.has_value()}};
    if (loss.rest) {
      row["kv_tokens"] = loss.rest->kv_tokens;
      row["slowest_seconds"] = loss.rest->slowest_seconds;
      if (f.loss_rates[i]) row["output_throughput"] = *f.loss_rates[i];
    }
    losses.push_back(row);
  }
  const LoadFigures& load = f.prediction.load;
  return {{"model", f.model},
          {"rows", f.options.rows},
          {"nodes", nodes},
          {"slowest_node", f.nodes[static_cast<size_t>(f.placement.slowest_node)].offer.name},
          {"slowest_seconds", f.placement.slowest_seconds},
          {"kv_tokens", f.placement.kv_tokens},
          {"reason", f.placement.reason},
          {"clients", f.load.clients},
          {"prompt_tokens", f.load.prompt_tokens},
          {"output_tokens", f.load.output_tokens},
          {"output_throughput", load.output_rate},
          {"median_ttft", load.ttft.median},
          {"median_tpot", load.tpot.median},
          {"mean_steps_in_flight", f.prediction.steps_in_flight},
          {"mean_step_rows", f.prediction.step_rows},
          {"losses", losses}};
}

}  // namespace headrace
