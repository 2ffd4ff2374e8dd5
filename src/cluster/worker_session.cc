#include "cluster/worker_session.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "base/build_id.h"
#include "base/cache_folder.h"
#include "base/log.h"
#include "cluster/control_messages.h"
#include "cluster/link_meter.h"
#include "cluster/message_fields.h"
#include "cluster/model_share.h"
#include "cluster/named_error.h"
#include "cluster/recipes.h"
#include "cluster/tcp_socket.h"
#include "cluster/time_limits.h"

namespace headrace::cluster {
namespace {

/// Until the other end of a data connection has made it.
constexpr double kLinkSeconds = 15;
/// Of tens of thousands of ranges.
constexpr size_t kMaxManifestBytes = size_t{15} << 20;

/// Data connections between a head and a worker.
constexpr std::array<std::string_view, 5> kPurposes = {"bytes", "plans", "activations", "heartbeat", kMeasurePurpose};

/// Where other workers reach one that has joined a head.
std::string data_address(const WorkerConfig& config) {
  if (!config.advertise.empty() || config.join.empty()) return config.advertise;
  if (!is_any_address(config.listen)) return config.listen;
  const std::string host = value_or_throw(local_host_towards(config.join));
  return cat(host, config.listen.substr(config.listen.rfind(':')));
}

/// Where parts of models are kept.
std::filesystem::path parts_folder() {
  const auto folder = cache_folder();
  if (!folder) {
    throw Error(ErrorCode::kInvalidArgument,
                "there is no folder for parts of models: set HOME or HEADRACE_CACHE, or name a copy of the model by "
                "--model");
  }
  return *folder / "parts";
}

}  // namespace

WorkerSession::WorkerSession(NodeMachine& machine, const WorkerConfig& config, Network& network, DataKeys& keys,
                             std::function<void()> hang_up)
    : machine_(machine),
      config_(config),
      network_(network),
      keys_(keys),
      hang_up_(std::move(hang_up)),
      memory_bytes_(config.memory_bytes) {}

void WorkerSession::end() {
  heartbeat_.reset();
  if (service_) stage_ = service_->stop();
  service_.reset();
  downstream_.reset();
  if (stage_) machine_.give_back(std::move(stage_));
}

nlohmann::json WorkerSession::answer(const std::string& what, const nlohmann::json& fields,
                                     const TaskProgress& progress) {
  if (what == "describe") return describe();
  if (what == "dial") return dial(fields);
  if (what == "leave") {
    farewell_ = read_text(fields, "why", 512);
    return nlohmann::json::object();
  }
  if (what == "open") return open(fields, progress);
  if (what == "manifest") return take_manifest(fields);
  if (what == "missing") return missing(fields);
  if (what == "received") return receive_ranges(progress);
  if (what == "ready") return make_ready();
  if (what == "probe") return probe();
  if (what == "measured") return {{"key", keys_.issue(std::string(kMeasurePurpose))}};
  if (what == "reach") return reach(fields);
  if (what == "load") return load(fields, progress);
  if (what == "prepare") return prepare(fields);
  if (what == "join") return join(fields);
  if (what == "begin") return begin();
  throw Error(ErrorCode::kUnsupported, cat("'", printable(what), "' is nothing that this worker can be asked"));
}

nlohmann::json WorkerSession::describe() const {
  NodeDescription description{.build = build_id(),
                              .isa = std::string(isa_name(machine_.isa())),
                              .threads = machine_.threads(),
                              .memory_bytes = memory_bytes_,
                              .data_address = data_address(config_),
                              .recipes = {}};
  for (const Numerics numerics : kAllNumerics) {
    description.recipes[static_cast<size_t>(numerics)] = recipes_text(numerics);
  }
  return to_json(description);
}

nlohmann::json WorkerSession::dial(const nlohmann::json& fields) {
  const std::string purpose = read_text(fields, "purpose", 64);
  if (config_.join.empty()) throw Error(ErrorCode::kInvalidArgument, "dial: this worker has joined no head");
  if (std::ranges::find(kPurposes, purpose) == kPurposes.end()) {
    throw Error(ErrorCode::kInvalidArgument, cat("dial: '", printable(purpose), "' is no data connection"));
  }
  take_link(purpose, value_or_throw(open_data_link(network_, config_.join, read_text(fields, "key", 256),
                                                   read_text(fields, "as", 128), after(kDialSeconds))));
  return nlohmann::json::object();
}

nlohmann::json WorkerSession::open(const nlohmann::json& fields, const TaskProgress& progress) {
  if (!config_.join.empty()) log_info("head {} has taken this worker, {}", config_.join, config_.name);
  end();
  is_ready_ = false;
  parts_.reset();
  expected_.clear();
  copy_.clear();
  rules_ = read_compute_rules(read_object(fields, "rules"));
  hash_ = read_text(fields, "hash", 64);
  if (!config_.model.empty()) {
    const auto copy = local_copy(config_.model, hash_, cache_folder(), progress);
    if (copy) {
      copy_ = copy.value();
      return {{"needs_manifest", false}};
    }
    log_warn("{}", copy.error().message());
  }
  const std::filesystem::path folder = parts_folder();
  std::optional<ModelManifest> kept = PartStore::kept_manifest(folder, hash_);
  if (!kept) return {{"needs_manifest", true}};
  parts_ = std::make_unique<PartStore>(folder, std::move(*kept), config_.disk_bytes);
  return {{"needs_manifest", false}};
}

nlohmann::json WorkerSession::take_manifest(const nlohmann::json& fields) {
  ModelManifest manifest = parse_manifest(read_text(fields, "text", kMaxManifestBytes));
  if (manifest.hash() != hash_) throw Error(ErrorCode::kCorrupt, "a manifest of another model");
  end();
  is_ready_ = false;
  expected_.clear();
  copy_.clear();
  parts_ = std::make_unique<PartStore>(parts_folder(), std::move(manifest), config_.disk_bytes);
  return nlohmann::json::object();
}

nlohmann::json WorkerSession::probe() {
  require_ready("probe");
  return to_json(machine_.probe());
}

StageUnits WorkerSession::units_of(const nlohmann::json& fields) const {
  if (!fields.contains("units")) return {};
  return read_units(read_object(fields, "units"), parts_->manifest().num_layers);
}

nlohmann::json WorkerSession::missing(const nlohmann::json& fields) {
  expected_.clear();
  if (!parts_) return {{"ranges", nlohmann::json::array()}};
  const StageUnits units = units_of(fields);
  if (!machine_.has_packed(hash_, units)) {
    const int64_t damaged = value_or_throw(parts_->forget_damaged(units));
    if (damaged > 0) log_warn("{} kept parts of model {} are damaged and asked for again", damaged, hash_);
  }
  expected_ = parts_->missing(units);
  nlohmann::json answer = {{"ranges", expected_}};
  if (!expected_.empty()) answer["key"] = keys_.issue("bytes");
  return answer;
}

nlohmann::json WorkerSession::receive_ranges(const TaskProgress& progress) {
  if (expected_.empty()) return nlohmann::json::object();
  const std::unique_ptr<Link> link = wait_for_link("bytes");
  std::vector<std::byte> payload;
  for (size_t i = 0; i < expected_.size(); ++i) {
    const FrameHeader header = value_or_throw(link->receive(payload, after(kStallSeconds)));
    if (header.kind != FrameKind::kBytes || header.id != expected_[i]) {
      throw Error(ErrorCode::kCorrupt, "a part of the model that was not asked for");
    }
    (void)value_or_throw(parts_->write(expected_[i], payload));
    progress(static_cast<double>(i + 1) / static_cast<double>(expected_.size()));
  }
  (void)value_or_throw(parts_->flush());
  expected_.clear();
  return nlohmann::json::object();
}

nlohmann::json WorkerSession::make_ready() {
  std::string path = copy_;
  if (parts_) path = value_or_throw(parts_->model_path({}));
  if (path.empty()) throw Error(ErrorCode::kInvalidArgument, "ready comes after open");
  end();
  machine_.open(open_model(path), hash_, rules_);
  if (parts_ && parts_->manifest().num_layers != machine_.spec().num_layers()) {
    throw Error(ErrorCode::kCorrupt, cat("a manifest of ", parts_->manifest().num_layers,
                                         " layers; the model's headers say ", machine_.spec().num_layers()));
  }
  is_ready_ = true;
  return nlohmann::json::object();
}

nlohmann::json WorkerSession::reach(const nlohmann::json& fields) {
  const std::string address = read_text(fields, "address", 512);
  const Deadline deadline = after(kLinkSeconds);
  const std::unique_ptr<Link> link = value_or_throw(
      open_data_link(network_, address, read_text(fields, "key", 256), std::string(kMeasurePurpose), deadline));
  const LinkMeasure measure = value_or_throw(measure_link(*link, config_.listen, deadline));
  return {{"round_trip", measure.round_trip_s}, {"bytes_per_second", measure.bytes_per_s}};
}

void WorkerSession::require_ready(const char* what) const {
  if (!is_ready_) throw Error(ErrorCode::kInvalidArgument, cat(what, " comes after ready"));
}

nlohmann::json WorkerSession::load(const nlohmann::json& fields, const TaskProgress& progress) {
  require_ready("load");
  end();
  const StageUnits units = read_units(read_object(fields, "units"), machine_.spec().num_layers());
  if (parts_) machine_.open(open_model(value_or_throw(parts_->model_path(units))), hash_, rules_);
  return {{"packed_bytes", machine_.load(units, progress)}};
}

nlohmann::json WorkerSession::prepare(const nlohmann::json& fields) {
  require_ready("prepare");
  end();
  const StageRules rules = read_stage_rules(read_object(fields, "stage"), machine_.spec());
  const std::string wire = read_text(fields, "wire_dtype", 8);
  const std::optional<WireDtype> wire_dtype = find_wire_dtype(wire);
  if (!wire_dtype) throw Error(ErrorCode::kUnsupported, cat("wire_dtype: '", printable(wire), "' is not known here"));
  if (const int64_t bytes = machine_.kv_bytes(rules); bytes > memory_bytes_) {
    throw Error(ErrorCode::kOutOfMemory,
                cat("a KV cache of ", bytes, " bytes; this worker may take ", memory_bytes_,
                    "; give it --memory-bytes, or the head a smaller --kv-cache-memory-bytes"));
  }
  stage_ = machine_.make_stage(rules);
  stage_config_ = {.hidden = machine_.spec().hidden, .wire = *wire_dtype};
  const std::lock_guard lock(mutex_);
  links_.clear();
  return {{"plans", keys_.issue("plans")},
          {"activations", keys_.issue("activations")},
          {"heartbeat", keys_.issue("heartbeat")},
          {"kv_bytes", stage_->kv_bytes()}};
}

nlohmann::json WorkerSession::join(const nlohmann::json& fields) {
  const std::string address = read_text(fields, "address", 512);
  downstream_ = value_or_throw(
      open_data_link(network_, address, read_text(fields, "key", 256), "activations", after(kLinkSeconds)),
      "to the next stage");
  return nlohmann::json::object();
}

nlohmann::json WorkerSession::begin() {
  if (!stage_) throw Error(ErrorCode::kInvalidArgument, "begin comes after prepare");
  heartbeat_ = std::make_unique<Heartbeat>(wait_for_link("heartbeat"), HeartbeatLimits{}, [this](const Error& e) {
    log_warn("the head is lost: {}", e.message());
    hang_up_();
  });
  StageLinks links{
      .head = wait_for_link("plans"), .upstream = wait_for_link("activations"), .downstream = std::move(downstream_)};
  service_ = std::make_unique<StageService>(stage_config_, std::move(stage_), std::move(links), [this](const Error& e) {
    log_info("the pipeline has ended: {}", e.message());
    hang_up_();
  });
  return nlohmann::json::object();
}

void WorkerSession::take_link(const std::string& purpose, std::unique_ptr<Link> link) {
  if (purpose == kMeasurePurpose) {
    const std::lock_guard lock(mutex_);
    measured_.push_back(std::async(std::launch::async, [mine = std::move(link)] {
      (void)answer_measuring(*mine, after(kLinkSeconds));  // whoever measures hears of what went wrong
    }));
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    links_[purpose] = std::move(link);
  }
  changed_.notify_all();
}

std::unique_ptr<Link> WorkerSession::wait_for_link(const std::string& purpose) {
  std::unique_lock lock(mutex_);
  const auto there = [&] { return links_.contains(purpose); };
  if (!changed_.wait_until(lock, after(kLinkSeconds), there)) {
    throw Error(ErrorCode::kTimeout,
                cat("nobody has opened the connection for ", purpose, " within ", kLinkSeconds, " s"));
  }
  return std::move(links_.extract(purpose).mapped());
}

}  // namespace headrace::cluster
