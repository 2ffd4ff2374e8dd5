#include "cluster/remote_node.h"

#include <array>
#include <future>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "cluster/link_meter.h"
#include "cluster/message_fields.h"
#include "cluster/named_error.h"
#include "cluster/time_limits.h"

namespace headrace::cluster {
namespace {

/// Of questions that take no time.
constexpr double kAnswerSeconds = kDescribePhase.limit_seconds;

TaskProgress told(PhaseReport& report) {
  return [&report](double share) { report.progress(share); };
}

}  // namespace

RemoteNode::RemoteNode(Network& network, const std::string& address, const Credentials& credentials)
    : network_(&network), id_(address), name_(cat("worker ", address)), data_address_(address) {
  std::unique_ptr<Link> link = value_or_throw(network.connect(address, after(kDialSeconds)), name_);
  PeerHello hello = value_or_throw(open_handshake(*link, credentials, "control", after(kHandshakeSeconds)), name_);
  if (hello.role != "worker") {
    throw Error(ErrorCode::kInvalidArgument, cat(name_, ": this is no worker but another head"));
  }
  identity_ = std::move(hello.identity);
  control_ = std::make_unique<ControlClient>(std::move(link), address);
}

RemoteNode::RemoteNode(JoinDesk& desk, Caller caller)
    : desk_(&desk),
      id_(std::move(caller.name)),
      name_(cat("worker ", id_)),
      data_address_(std::move(caller.description.data_address)),
      identity_(std::move(caller.identity)),
      control_(std::move(caller.control)) {}

RemoteNode::~RemoteNode() {
  control_.reset();  // its worker may call again as soon as it is released
  if (desk_ != nullptr) desk_->release(id_);
}

NodeDescription RemoteNode::describe() { return read_description(control_->ask("describe", {}, kAnswerSeconds)); }

void RemoteNode::open(const ModelShare& share, const ComputeRules& rules, PhaseReport& report) {
  const nlohmann::json answer = control_->ask("open", {{"hash", share.hash()}, {"rules", to_json(rules)}},
                                              kHashPhase.limit_seconds, told(report));
  if (read_bool(answer, "needs_manifest")) {
    control_->ask("manifest", {{"text", manifest_json(share.manifest())}}, kHashPhase.limit_seconds);
  }
  send_missing(share, nlohmann::json::object(), report);
  control_->ask("ready", {}, kHashPhase.limit_seconds);
}

int64_t RemoteNode::send_parts(const ModelShare& share, const StageUnits& units, PhaseReport& report) {
  return send_missing(share, {{"units", to_json(units)}}, report);
}

int64_t RemoteNode::send_missing(const ModelShare& share, nlohmann::json fields, PhaseReport& report) {
  const nlohmann::json answer = control_->ask("missing", std::move(fields), kAnswerSeconds);
  const size_t known = share.manifest().ranges.size();
  std::vector<size_t> ranges;
  int64_t all_bytes = 0;
  for (const nlohmann::json& range : read_array(answer, "ranges", 0, known)) {
    ranges.push_back(static_cast<size_t>(as_integer(range, "ranges", 0, static_cast<int64_t>(known) - 1)));
    all_bytes += std::ssize(share.bytes(ranges.back()));
  }
  if (ranges.empty()) return 0;
  const std::unique_ptr<Link> link = open_link("bytes", read_text(answer, "key", 256));
  int64_t bytes = 0;
  std::future<Result<std::monostate>> sent = std::async(std::launch::async, [&]() -> Result<std::monostate> {
    for (const size_t range : ranges) {
      const std::span<const std::byte> part = share.bytes(range);
      const auto done = link->send({.kind = FrameKind::kBytes, .id = range}, std::array{part}, after(kStallSeconds));
      if (!done) return done;
      share.drop_pages(range);
      bytes += std::ssize(part);
      report.progress_bytes(bytes, all_bytes);
    }
    return std::monostate{};
  });
  try {
    control_->ask("received", {}, kStallSeconds + kAnswerSeconds);
  } catch (const Error&) {
    link->close();  // or the sender would wait for a worker that takes no more
    sent.wait();
    throw;
  }
  (void)value_or_throw(sent.get(), cat(name_, ": sending the model"));
  return bytes;
}

NodeCosts RemoteNode::probe() {
  NodeCosts costs = read_costs(control_->ask("probe", {}, kMeasurePhase.limit_seconds));
  check_costs(costs, id_);
  return costs;
}

std::string RemoteNode::measure_key() { return read_text(control_->ask("measured", {}, kAnswerSeconds), "key", 256); }

std::unique_ptr<Link> RemoteNode::open_measure_link() {
  return open_link(std::string(kMeasurePurpose), desk_ == nullptr ? measure_key() : "");
}

void RemoteNode::reach_from_head() { (void)open_measure_link(); }

NodeLink RemoteNode::measure_from_head() {
  const std::unique_ptr<Link> link = open_measure_link();
  const LinkMeasure measure = value_or_throw(measure_link(*link, "head", after(kReadyPhase.limit_seconds)), name_);
  return {.bytes_per_second = measure.bytes_per_s, .round_trip_seconds = measure.round_trip_s};
}

NodeLink RemoteNode::measure_to(const std::string& address, const std::string& key) {
  const nlohmann::json answer = control_->ask("reach", {{"address", address}, {"key", key}}, kReadyPhase.limit_seconds);
  return {.bytes_per_second = read_number(answer, "bytes_per_second", 1, 1e15),
          .round_trip_seconds = read_number(answer, "round_trip", 0, 1e6)};
}

int64_t RemoteNode::load(const StageUnits& units, PhaseReport& report) {
  const nlohmann::json answer =
      control_->ask("load", {{"units", to_json(units)}}, kPackPhase.limit_seconds, told(report));
  return read_integer(answer, "packed_bytes", 0, int64_t{1} << 60);
}

StageKeys RemoteNode::prepare(const StageRules& rules, const std::string& wire_dtype, int64_t& kv_bytes) {
  const nlohmann::json answer =
      control_->ask("prepare", {{"stage", to_json(rules)}, {"wire_dtype", wire_dtype}}, kReadyPhase.limit_seconds);
  kv_bytes = read_integer(answer, "kv_bytes", 0, int64_t{1} << 60);
  return {.plans = read_text(answer, "plans", 256),
          .activations = read_text(answer, "activations", 256),
          .heartbeat = read_text(answer, "heartbeat", 256)};
}

void RemoteNode::join(const std::string& address, const std::string& key) {
  control_->ask("join", {{"address", address}, {"key", key}}, kReadyPhase.limit_seconds);
}

void RemoteNode::begin() { control_->ask("begin", {}, kReadyPhase.limit_seconds); }

std::unique_ptr<Link> RemoteNode::open_link(const std::string& purpose, const std::string& key) {
  const std::string where = cat(name_, ": data connection");
  if (desk_ == nullptr) {
    return value_or_throw(open_data_link(*network_, id_, key, purpose, after(kDialSeconds)), where);
  }
  const auto dial = [&](const std::string& announced_as, const std::string& own_key) {
    control_->ask("dial", {{"purpose", purpose}, {"as", announced_as}, {"key", own_key}},
                  kDialSeconds + kHandshakeSeconds);
  };
  return value_or_throw(desk_->fetch(dial, purpose, kDialSeconds), where);
}

}  // namespace headrace::cluster
