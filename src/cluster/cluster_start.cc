// How a cluster starts: machines are reached, measured and loaded, and their links made. Machines that come back go
// through the part of it that they have lost.
#include <fmt/format.h>

#include <future>
#include <utility>

#include "base/build_id.h"
#include "base/cache_folder.h"
#include "base/log.h"
#include "cluster/cluster.h"
#include "cluster/memory_budget.h"
#include "cluster/node_probe.h"
#include "cluster/placement_options.h"
#include "cluster/recipes.h"

namespace headrace::cluster {
namespace {

/// How long a try to join again waits for workers that call.
constexpr double kJoinLookSeconds = 1;

/// Does `task(i)` for 0 <= i < n, each on a thread of its own; throws the first error of the lowest i.
template <class Task>
void for_all(size_t n, const Task& task) {
  std::vector<std::future<void>> running;
  for (size_t i = 0; i < n; ++i) running.push_back(std::async(std::launch::async, [&task, i] { task(i); }));
  for (std::future<void>& one : running) one.wait();
  for (std::future<void>& one : running) one.get();
}

ComputeRules rules_of(const StageSite& site) {
  return {.numerics = site.config.numerics, .kv_dtype = site.kv_dtype, .max_step_tokens = site.config.max_step_tokens};
}

TlsFiles tls_files(const ClusterOptions& options) {
  return {.certificate = options.certificate, .key = options.key, .authority = options.authority};
}

void tell(const std::string& line) { log_info("{}", line); }

ModelShare share_of(const StageSite& site) {
  PhaseReport report("head", kHashPhase, tell);
  ModelShare share(site.files, site.spec, cache_folder(), [&](double part) {
    report.progress(part);
    if (site.progress) site.progress(part);
  });
  report.done();
  return share;
}

std::string costs_text(const NodeCosts& costs) {
  std::string text;
  for (const UnitSeconds& at : costs.at) {
    text += fmt::format("{}{} rows: attention {:.2f}, feed-forward {:.2f}, output {:.2f} ms", text.empty() ? "" : "; ",
                        at.rows, at.attention_seconds * 1e3, at.feed_forward_seconds * 1e3, at.output_seconds * 1e3);
  }
  return text;
}

void show_units(const StageUnits& units, ClusterNode& node) {
  node.first_layer = in_layers(units.first_sublayer);
  node.num_layers = in_layers(units.num_sublayers());
  node.layers = layers_text(units);
  node.embedding = units.embedding;
  node.output = units.output;
}

std::string units_text(const StageUnits& units) {
  std::string text = layers_text(units);
  if (units.embedding) text += ", embedding";
  if (units.output) text += ", output";
  return text;
}

}  // namespace

Cluster::Cluster(const StageSite& site, const ClusterOptions& options)
    : options_(options),
      spec_(site.spec),
      rules_(rules_of(site)),
      isa_(site.config.isa),
      credentials_(credentials_of("head", options.secret_file)),
      network_(make_tcp_network(tls_files(options))),
      share_(share_of(site)) {
  JoinDesk::Places places;
  for (const std::string& worker : options.workers) {
    Node& node = nodes_.emplace_back();
    node.name = worker;
    node.joins = options.joins(worker);
    if (node.joins) places.names.push_back(worker);
  }
  if (!options.join_listen.empty()) gather(std::move(places));
  connect();
  const Placement placement = find_placement(site);
  log_info("placement: {}", placement.reason);
  placement_text_ = placement.reason;
  take_placement(site, placement);
  load(site);
  link_up();
  has_begun_ = true;
  keeper_ = std::thread([this] { keep(); });
}

void Cluster::gather(JoinDesk::Places places) {
  const bool are_known = !places.names.empty();
  places.number = are_known ? places.names.size() : static_cast<size_t>(options_.wait_for_workers);
  desk_ = std::make_unique<JoinDesk>(options_.join_listen, tls_files(options_), credentials_, std::move(places),
                                     [this](const Caller& caller) { check_node(caller.name, caller.description); });
  log_info("workers may join at port {}", desk_->port());
  for (std::string& name : desk_->gather(options_.join_timeout_seconds)) {
    if (are_known) continue;
    Node& node = nodes_.emplace_back();
    node.name = std::move(name);
    node.joins = true;
  }
}

void Cluster::check_node(const std::string& name, const NodeDescription& description) const {
  const auto refuse = [&](const std::string& why) {
    throw Error(ErrorCode::kUnsupported, cat("worker ", name, ": ", why));
  };
  if (description.build != build_id() && !options_.allow_other_builds) {
    refuse(cat("build ", printable(description.build), ", this is ", build_id(),
               "; use one build on all machines, or --allow-other-builds"));
  }
  if (const auto obstacle = recipe_obstacle(description, rules_.numerics, isa_)) refuse(*obstacle);
}

void Cluster::wait_for_joined() {
  std::vector<std::string> names;
  for (Node& node : nodes_) {
    if (!node.joins) continue;
    node.remote.reset();
    names.push_back(node.name);
  }
  if (names.empty()) return;
  const std::vector<std::string> missing = desk_->missing(names, after(kJoinLookSeconds));
  if (missing.empty()) return;
  std::string text;
  for (const std::string& name : missing) text += cat(text.empty() ? "worker " : ", worker ", name);
  throw Error(ErrorCode::kUnavailable, cat(text, ": has not joined"));
}

void Cluster::refuse_doubles() const {
  for (size_t i = 0; i < nodes_.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (nodes_[i].remote->identity() != nodes_[j].remote->identity()) continue;
      throw Error(ErrorCode::kInvalidArgument, cat("worker ", nodes_[j].name, " and worker ", nodes_[i].name,
                                                   " are one and the same; name each machine once"));
    }
  }
}

template <class Task>
auto Cluster::run_phase(const std::string& node, const StartPhase& phase, const Task& task) const {
  // Machines are joined again in many tries, of which only the last one is of interest.
  const bool shown = !has_begun_;
  PhaseReport report(node, phase,
                     [shown](const std::string& line) { shown ? log_info("{}", line) : log_debug("{}", line); });
  try {
    return task(report);
  } catch (const Error& error) {
    throw report.failure(error);
  }
}

void Cluster::connect() {
  wait_for_joined();
  for_all(nodes_.size(), [this](size_t i) {
    show_up(i, false);
    nodes_[i].remote.reset();
    run_phase(nodes_[i].text(), kConnectPhase, [&](PhaseReport& report) {
      nodes_[i].remote = reach(nodes_[i]);
      show_up(i, true);
      report.done();
    });
  });
  refuse_doubles();
  for_all(nodes_.size(), [this](size_t i) {
    Node& node = nodes_[i];
    const NodeDescription description =
        run_phase(node.text(), kDescribePhase, [&](PhaseReport&) { return node.remote->describe(); });
    node.isa = description.isa;
    node.threads = description.threads;
    node.memory_bytes = description.memory_bytes;
    check_node(node.name, description);
    run_phase(node.text(), kHashPhase, [&](PhaseReport& report) {
      node.remote->open(share_, rules_, report);
      report.done();
    });
  });
}

std::unique_ptr<RemoteNode> Cluster::reach(const Node& node) {
  if (!node.joins) return std::make_unique<RemoteNode>(*network_, node.name, credentials_);
  std::optional<Caller> caller = desk_->take(node.name);
  if (!caller) throw Error(ErrorCode::kUnavailable, "has gone again");
  return std::make_unique<RemoteNode>(*desk_, std::move(*caller));
}

Placement Cluster::find_placement(const StageSite& site) {
  std::vector<NodeOffer> offers(nodes_.size() + 1);
  offers[0].name = "head";
  offers[0].memory_bytes = memory_budget(options_.memory_bytes);
  for_all(offers.size(), [&](size_t i) {
    NodeOffer& offer = offers[i];
    const std::string node = i == 0 ? "head" : nodes_[i - 1].text();
    offer.costs = run_phase(node, kMeasurePhase, [&](PhaseReport& report) {
      NodeCosts costs = i > 0 ? nodes_[i - 1].remote->probe()
                              : probe_node({.files = site.files,
                                            .spec = site.spec,
                                            .backend = site.backend,
                                            .pool = site.pool,
                                            .comm = site.comm,
                                            .numerics = rules_.numerics,
                                            .kv_dtype = rules_.kv_dtype});
      report.done(costs_text(costs));
      return costs;
    });
    if (i > 0) {
      offer.name = nodes_[i - 1].name;
      offer.memory_bytes = nodes_[i - 1].memory_bytes;
    }
  });
  measure_links(offers);
  const ModelUnits units = model_units(site.spec, site.files, site.kv_dtype);
  ServingLimits limits{.max_step_tokens = rules_.max_step_tokens, .max_model_len = site.config.max_model_len};
  if (site.config.serving) {
    limits.max_num_seqs = site.config.serving->max_num_seqs;
    limits.kv_cache_bytes = site.config.serving->kv_cache_bytes;
  }
  Placement placement = place(units, offers, placement_options(options_, units, offers.size(), limits, {}));
  head_.name = "head";
  head_.isa = isa_name(site.config.isa);
  head_.threads = site.pool.threads();
  head_.memory_bytes = offers[0].memory_bytes;
  return placement;
}

void Cluster::measure_links(std::vector<NodeOffer>& offers) {
  std::vector<std::string> keys(nodes_.size());
  for_all(nodes_.size(), [&](size_t i) {
    if (i > 0) keys[i] = nodes_[i].remote->measure_key();
  });
  for_all(nodes_.size(), [&](size_t i) {
    const Node& node = nodes_[i];
    run_phase(cat("head to ", node.place_text()), kReachPhase, [&](PhaseReport&) {
      if (i == 0) {
        offers[0].link = node.remote->measure_from_head();
      } else {
        node.remote->reach_from_head();
      }
    });
    if (i + 1 == nodes_.size()) return;
    const Node& next = nodes_[i + 1];
    run_phase(cat(node.place_text(), " to ", next.place_text()), kReachPhase, [&](PhaseReport&) {
      offers[i + 1].link = node.remote->measure_to(next.remote->data_address(), keys[i + 1]);
    });
  });
  // The last one's goes back to the head, over a connection that the head has made.
  offers.back().link = nodes_.size() > 1 ? nodes_.back().remote->measure_from_head() : offers.front().link;
  for (size_t i = 0; i < offers.size(); ++i) {
    log_info("link from {} to {}: {:.0f} MB/s, round trip {:.2f} ms", offers[i].name,
             i + 1 < offers.size() ? offers[i + 1].name : offers.front().name, offers[i].link.bytes_per_second * 1e-6,
             offers[i].link.round_trip_seconds * 1e3);
  }
}

void Cluster::take_placement(const StageSite& site, const Placement& placement) {
  std::vector<Node> used;
  for (size_t i = 0; i < nodes_.size(); ++i) {
    const NodeShare& share = placement.nodes[i + 1];
    if (!share.is_used()) {
      log_warn("worker {} is not used: the pipeline would not be faster with it", nodes_[i].name);
      continue;
    }
    nodes_[i].units = share.units;
    used.push_back(std::move(nodes_[i]));
  }
  nodes_ = std::move(used);
  if (nodes_.empty()) {
    throw Error(ErrorCode::kInvalidArgument,
                "no worker would make the pipeline faster: leave out --workers, or cut the model by --pipeline-layers");
  }
  const StageUnits& own = placement.nodes.front().units;
  first_units_ = placement.stages.front().units;
  output_on_head_ = own.output;
  // Whoever computes the output alone needs only the rows that are sampled.
  const auto gathers = [&](size_t stage) {
    if (stage + 1 == placement.stages.size()) return false;
    const StageUnits& next = placement.stages[stage + 1].units;
    return next.output && next.num_sublayers() == 0;
  };
  head_gathers_ = gathers(0);
  for (size_t i = 0; i < nodes_.size(); ++i) nodes_[i].gathers = gathers(i + 1);
  show_units(own, head_);

  assembly_.num_stages = nodes_.size() + 1;
  assembly_.steps_in_flight = options_.steps_in_flight;
  CachePlan& cache = assembly_.cache;
  cache.group_blocks = placement.group_blocks;
  cache.tokens = placement.kv_tokens;
  const int32_t wish = site.config.max_model_len > 0 ? site.config.max_model_len : spec_.max_positions;
  cache.max_model_len = static_cast<int32_t>(std::min<int64_t>(wish, cache.tokens));
  stage_rules_.group_blocks = cache.group_blocks;
  stage_rules_.max_seq_len = cache.max_model_len;
}

void Cluster::load(const StageSite& site) {
  for_all(nodes_.size() + 1, [&](size_t i) {
    if (i < nodes_.size()) return load_worker(nodes_[i]);
    run_phase("head", kPackPhase, [&](PhaseReport& report) {
      build_head_stages(site);
      report.done(fmt::format("{:.1f} MB packed", static_cast<double>(head_.weight_bytes) * 1e-6));
    });
  });
}

void Cluster::load_workers() {
  for_all(nodes_.size(), [this](size_t i) { load_worker(nodes_[i]); });
}

void Cluster::load_worker(Node& node) {
  run_phase(node.text(), kSendPhase, [&](PhaseReport& report) {
    const int64_t sent = node.remote->send_parts(share_, node.units, report);
    report.done(fmt::format("{:.1f} MB sent, 100 %", static_cast<double>(sent) * 1e-6));
  });
  run_phase(node.text(), kPackPhase, [&](PhaseReport& report) {
    node.weight_bytes = node.remote->load(node.units, report);
    report.done(
        fmt::format("{}, {:.1f} MB packed", units_text(node.units), static_cast<double>(node.weight_bytes) * 1e-6));
  });
}

void Cluster::build_head_stages(const StageSite& site) {
  const auto make = [&](const StageUnits& units, double begin, double end, const WeightView* tied_table) {
    const auto part = [&](double share) {
      if (site.progress) site.progress(begin + share * (end - begin));
    };
    StageWeights weights(site.backend, site.pool, site.files, site.spec, site.config.numerics, units, part, tied_table);
    assembly_.packed_bytes += weights.packed_bytes();
    assembly_.file_bytes += weights.file_bytes();
    StageRules rules = stage_rules_;
    rules.gather_outputs = units.embedding && head_gathers_;
    auto stage =
        std::make_unique<Stage>(site.backend, site.spec, std::move(weights), stage_config(rules_, rules), site.comm);
    assembly_.kv_bytes += stage->kv_bytes();
    return stage;
  };
  head_stages_.first = make(first_units_, 0, output_on_head_ ? 0.8 : 1.0, nullptr);
  if (output_on_head_) {
    const int32_t end = kSublayers * spec_.num_layers();
    head_stages_.output = make({.first_sublayer = end, .end_sublayer = end, .output = true}, 0.8, 1,
                               &head_stages_.first->weights().embedding());
  }
  head_.weight_bytes = assembly_.packed_bytes;
  head_.kv_bytes = assembly_.kv_bytes;
}

void Cluster::link_up() {
  {
    const std::lock_guard lock(mutex_);
    early_.reset();
  }
  std::vector<StageKeys> keys(nodes_.size());
  for_all(nodes_.size(), [&](size_t i) {
    StageRules rules = stage_rules_;
    rules.gather_outputs = nodes_[i].gathers;
    keys[i] = run_phase(nodes_[i].text(), kReadyPhase, [&](PhaseReport&) {
      return nodes_[i].remote->prepare(rules, options_.wire_dtype, nodes_[i].kv_bytes);
    });
  });
  for_all(nodes_.size() - 1, [&](size_t i) {
    const Node& next = nodes_[i + 1];
    run_phase(cat(nodes_[i].place_text(), " to ", next.place_text()), kReachPhase,
              [&](PhaseReport&) { nodes_[i].remote->join(next.remote->data_address(), keys[i + 1].activations); });
  });
  std::vector<WorkerLink> workers;
  std::vector<std::shared_ptr<Heartbeat>> heartbeats;
  for (size_t i = 0; i < nodes_.size(); ++i) {
    workers.push_back(
        {.name = cat("worker ", nodes_[i].name), .plans = nodes_[i].remote->open_link("plans", keys[i].plans)});
    heartbeats.push_back(std::make_shared<Heartbeat>(nodes_[i].remote->open_link("heartbeat", keys[i].heartbeat),
                                                     HeartbeatLimits{},
                                                     [this, i](const Error& error) { lost(i, error); }));
  }
  std::unique_ptr<Link> activations = nodes_.front().remote->open_link("activations", keys.front().activations);
  for_all(nodes_.size(), [&](size_t i) {
    run_phase(nodes_[i].text(), kReadyPhase, [&](PhaseReport& report) {
      nodes_[i].remote->begin();
      report.done();
    });
  });
  auto pipeline = std::make_shared<PipelineExecutor>(
      PipelineExecutor::Config{
          .hidden = spec_.hidden, .wire = *find_wire_dtype(options_.wire_dtype), .timeline = step_timeline()},
      std::move(head_stages_), std::move(workers), std::move(activations), [this] { look_again(); });
  std::optional<Error> early;
  std::shared_ptr<PipelineExecutor> current;
  {
    const std::lock_guard lock(mutex_);
    pipeline_ = std::move(pipeline);
    heartbeats_ = std::move(heartbeats);
    shown_ = describe_nodes();
    is_lost_ = false;
    early = std::exchange(early_, std::nullopt);
    current = pipeline_;
  }
  if (early) current->lose(*early);
}

std::vector<ClusterNode> Cluster::describe_nodes() const {
  std::vector<ClusterNode> all = {head_};
  for (const Node& node : nodes_) {
    ClusterNode& shown = all.emplace_back();
    shown.name = node.name;
    shown.isa = node.isa;
    shown.threads = node.threads;
    shown.memory_bytes = node.memory_bytes;
    shown.weight_bytes = node.weight_bytes;
    shown.kv_bytes = node.kv_bytes;
    show_units(node.units, shown);
  }
  return all;
}

}  // namespace headrace::cluster
