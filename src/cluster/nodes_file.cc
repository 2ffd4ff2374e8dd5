#include "cluster/nodes_file.h"

#include <array>
#include <deque>
#include <set>

#include "base/error.h"
#include "files/options_file.h"

namespace headrace::cluster {
namespace {

/// What else the one file of a cluster holds, for those who run it (docs/cluster.md).
constexpr std::array<std::string_view, 7> kOtherKeys = {
    "model", "secret_file", "cluster_certfile", "cluster_keyfile", "cluster_cafile", "head", "workers"};

/// An entry in the units of the file.
struct Entry {
  std::string place;  ///< "nodes.yaml:3"
  std::string name;
  double memory_gb = 0;
  std::vector<int32_t> rows;
  std::vector<double> layer_ms, output_ms;
  double memory_gb_per_s = 0;
  double int8_tops = 0;
  int32_t cores = 0;
  double gops_per_core = 0;
  double efficiency = 0.6;
  double fixed_ms = 0;
  double link_gbit = 1;
  double link_rtt_ms = 0.2;

  std::vector<Option> options() {
    constexpr OptionRange kAmount{.min = 0, .max = 1e9, .above_min = true};
    constexpr OptionRange kTime{.min = 0, .max = 1e9};
    return {
        {.name = "name", .target = &name, .help = "of the node"},
        {.name = "memory-gb", .target = &memory_gb, .range = kAmount, .help = "for weights, workspace and cache"},
        {.name = "rows", .target = &rows, .range = {.min = 1, .max = 1 << 20}, .help = "of measured steps"},
        {.name = "layer-ms", .target = &layer_ms, .range = kAmount, .help = "a layer at these rows"},
        {.name = "output-ms", .target = &output_ms, .range = kAmount, .help = "the output projection at these rows"},
        {.name = "memory-gb-per-s", .target = &memory_gb_per_s, .range = kAmount, .help = "memory bandwidth"},
        {.name = "int8-tops", .target = &int8_tops, .range = kAmount, .help = "10^12 operations a second"},
        {.name = "cores", .target = &cores, .range = {.min = 1, .max = 4096}, .help = "cores"},
        {.name = "gops-per-core", .target = &gops_per_core, .range = kAmount, .help = "10^9 operations a second"},
        {.name = "efficiency",
         .target = &efficiency,
         .range = {.min = 0, .max = 1, .above_min = true},
         .help = "share"},
        {.name = "fixed-ms", .target = &fixed_ms, .range = kTime, .help = "of each step"},
        {.name = "link-gbit", .target = &link_gbit, .range = kAmount, .help = "to the next node"},
        {.name = "link-rtt-ms", .target = &link_rtt_ms, .range = kTime, .help = "to the next node"}};
  }
};

NodeCosts measured_costs(const Entry& entry, const ModelUnits& model) {
  NodeCosts costs{.probe_bytes = model.sublayer_bytes(0, kSublayers), .fixed_seconds = entry.fixed_ms * 1e-3};
  const auto bytes = [](int64_t of) { return static_cast<double>(of); };
  const double attention_share = bytes(costs.probe_bytes.attention) / bytes(costs.probe_bytes.total());
  for (size_t i = 0; i < entry.rows.size(); ++i) {
    costs.at.push_back({.rows = entry.rows[i],
                        .attention_seconds = attention_share * entry.layer_ms[i] * 1e-3,
                        .feed_forward_seconds = (1 - attention_share) * entry.layer_ms[i] * 1e-3,
                        .output_seconds = entry.output_ms[i] * 1e-3});
  }
  check_costs(costs, entry.name);
  return costs;
}

/// `fail`: throws with what is wrong.
template <class Fail>
NodeCosts costs_of(const Entry& entry, const ModelUnits& model, const Fail& fail) {
  const bool is_measured = !entry.rows.empty() || !entry.layer_ms.empty() || !entry.output_ms.empty();
  const bool has_sheet = entry.int8_tops > 0 || entry.cores > 0 || entry.gops_per_core > 0;
  if (is_measured && has_sheet)
    fail("rows, layer_ms and output_ms beside int8_tops or cores; give the one or the other");
  if (is_measured) {
    if (entry.rows.size() != entry.layer_ms.size() || entry.rows.size() != entry.output_ms.size()) {
      fail(cat("rows, layer_ms and output_ms: ", entry.rows.size(), ", ", entry.layer_ms.size(), " and ",
               entry.output_ms.size(), " values; expected as many of each"));
    }
    for (size_t i = 1; i < entry.rows.size(); ++i) {
      if (entry.rows[i] > entry.rows[i - 1]) continue;
      fail(cat("rows: ", entry.rows[i], " rows after ", entry.rows[i - 1], "; expected numbers that rise"));
    }
    return measured_costs(entry, model);
  }
  if (entry.int8_tops > 0 && (entry.cores > 0 || entry.gops_per_core > 0)) {
    fail("int8_tops beside cores; give the one or the other");
  }
  const double operations = entry.int8_tops > 0 ? entry.int8_tops * 1e12 : entry.cores * entry.gops_per_core * 1e9;
  if (entry.memory_gb_per_s <= 0 || operations <= 0) {
    fail(
        "no speed; expected measured rows, layer_ms and output_ms, or memory_gb_per_s with int8_tops or with cores and "
        "gops_per_core");
  }
  return roofline({.bytes_per_second = entry.memory_gb_per_s * 1e9,
                   .operations_per_second = operations,
                   .efficiency = entry.efficiency,
                   .fixed_seconds = entry.fixed_ms * 1e-3},
                  model);
}

}  // namespace

std::vector<DescribedNode> read_nodes_file(const std::string& path, const ModelUnits& model) {
  std::deque<Entry> entries;  // options point into them
  std::vector<OptionsSection> sections;
  for (const std::string_view key : kOtherKeys) sections.push_back({.key = key});
  sections.push_back({.key = "nodes", .is_list = true, .add = [&](const std::string& place) {
                        entries.emplace_back().place = place;
                        return entries.back().options();
                      }});
  read_options_file(path, {}, sections);
  if (entries.empty()) {
    throw LoadError(path, "expected \"nodes:\" with a list of machines (docs/plan.md)", ErrorCode::kInvalidArgument);
  }
  std::vector<DescribedNode> nodes;
  std::set<std::string> names;
  for (const Entry& entry : entries) {
    const auto fail = [&](const std::string& what) {
      throw LoadError(entry.place,
                      cat("nodes, entry ", nodes.size() + 1,
                          entry.name.empty() ? "" : cat(" (", printable(entry.name), ")"), ": ", what),
                      ErrorCode::kInvalidArgument);
    };
    if (entry.name.empty()) fail("no name");
    if (!names.insert(entry.name).second) fail("another entry has the same name");
    if (entry.memory_gb <= 0) fail("no memory_gb");
    nodes.push_back({.offer = {.name = entry.name,
                               .memory_bytes = static_cast<int64_t>(entry.memory_gb * 1e9),
                               .costs = costs_of(entry, model, fail),
                               .link = {.bytes_per_second = entry.link_gbit * 1e9 / 8,
                                        .round_trip_seconds = entry.link_rtt_ms * 1e-3}},
                     .memory_bytes_per_second = entry.memory_gb_per_s * entry.efficiency * 1e9});
  }
  return nodes;
}

}  // namespace headrace::cluster
