#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "cluster/control.h"
#include "cluster/control_messages.h"
#include "cluster/handshake.h"
#include "cluster/model_share.h"
#include "cluster/placement.h"

namespace headrace::cluster {

/// Keys for the data connections of a stage that is prepared.
struct StageKeys {
  std::string plans, activations, heartbeat;
};

/// A worker as the head sees it: the questions of WorkerSession as functions. Each throws Error, naming the worker.
/// Threading: one thread at a time.
class RemoteNode {
 public:
  /// Connects, proves the secret, and asks what the machine is.
  RemoteNode(Network& network, const std::string& address, const Credentials& credentials);

  [[nodiscard]] const NodeDescription& description() const noexcept { return description_; }

  /// The model that `share` has, with whatever the worker lacks of the files' headers.
  void open(const ModelShare& share, const ComputeRules& rules);
  /// Sends what the worker lacks of the model for `units`; the bytes of it.
  int64_t send_parts(const ModelShare& share, const StageUnits& units);
  [[nodiscard]] NodeCosts probe();
  /// For whoever measures the way to it.
  [[nodiscard]] std::string measure_key();
  /// The way from here to it, and from it to another worker.
  [[nodiscard]] NodeLink measure_from_head();
  [[nodiscard]] NodeLink measure_to(const std::string& address, const std::string& key);
  /// Bytes of the packed weights.
  int64_t load(const StageUnits& units);
  /// `kv_bytes`: of the stage's cache.
  [[nodiscard]] StageKeys prepare(const StageRules& rules, const std::string& wire_dtype, int64_t& kv_bytes);
  /// Has it connect to the next stage.
  void join(const std::string& address, const std::string& key);
  void begin();
  /// A data connection to it.
  [[nodiscard]] std::unique_ptr<Link> open_link(const std::string& purpose, const std::string& key);

 private:
  int64_t send_missing(const ModelShare& share, nlohmann::json fields);

  Network& network_;
  std::string address_;
  std::string name_;  ///< "worker 10.0.0.2:8100"
  std::unique_ptr<ControlClient> control_;
  NodeDescription description_;
};

}  // namespace headrace::cluster
