// GET /v1/cluster: the machines that hold the model, and what each does.
#include "openai/fields.h"
#include "server/endpoints/endpoints.h"

namespace headrace::server {
namespace {

openai::Json node_json(const ClusterNode& node, double seconds) {
  openai::Json json;
  json["name"] = node.name;
  json["up"] = node.up;
  json["isa"] = node.isa;
  json["threads"] = node.threads;
  json["units"] = {{"embedding", node.embedding},
                   {"first_layer", node.first_layer},
                   {"num_layers", node.num_layers},
                   {"layers", node.layers},
                   {"output", node.output}};
  json["memory"] = {
      {"limit_bytes", node.memory_bytes}, {"weight_bytes", node.weight_bytes}, {"kv_cache_bytes", node.kv_bytes}};
  json["busy_share"] = seconds > 0 ? node.busy_seconds / seconds : 0;
  json["seconds"] = {{"compute", node.compute_seconds},
                     {"serialise", node.serialise_seconds},
                     {"wire", node.wire_seconds},
                     {"wait", node.wait_seconds}};
  json["link"] = {{"sent_bytes", node.bytes_sent},
                  {"received_bytes", node.bytes_received},
                  {"round_trip_seconds", node.round_trip_seconds},
                  {"missed_heartbeats", node.missed_heartbeats}};
  return json;
}

/// Compute time of the slowest machine over the mean of all; 1: all compute as long.
double imbalance(const ClusterFigures& figures) {
  double slowest = 0;
  double sum = 0;
  for (const ClusterNode& node : figures.nodes) {
    slowest = std::max(slowest, node.compute_seconds);
    sum += node.compute_seconds;
  }
  return sum > 0 ? slowest * static_cast<double>(figures.nodes.size()) / sum : 1;
}

}  // namespace

HttpReply show_cluster(const Exchange&, ServerContext& server) {
  const ClusterFigures figures = server.model().cluster_figures();
  openai::Json body;
  body["object"] = "cluster";
  body["up"] = figures.up;
  body["placement"] = figures.placement;
  body["seconds"] = figures.seconds;
  body["steps"] = figures.steps;
  body["tokens"] = figures.tokens;
  body["steps_in_flight"] = figures.steps_in_flight;
  body["steps_in_flight_limit"] = figures.steps_in_flight_limit;
  body["imbalance"] = imbalance(figures);
  body["losses"] = figures.losses;
  body["nodes"] = openai::Json::array();
  for (const ClusterNode& node : figures.nodes) body["nodes"].push_back(node_json(node, figures.seconds));
  return {.body = openai::to_text(body)};
}

}  // namespace headrace::server
