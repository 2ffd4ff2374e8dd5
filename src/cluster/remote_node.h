#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "cluster/control.h"
#include "cluster/control_messages.h"
#include "cluster/handshake.h"
#include "cluster/join_desk.h"
#include "cluster/model_share.h"
#include "cluster/placement.h"
#include "cluster/start_phase.h"

namespace headrace::cluster {

/// Keys for the data connections of a stage that is prepared.
struct StageKeys {
  std::string plans, activations, heartbeat;
};

/// A worker as the head sees it: the questions of WorkerSession as functions. Each throws Error, naming the worker.
/// Threading: one thread at a time.
class RemoteNode {
 public:
  /// A worker that is called: connects, and proves the secret.
  RemoteNode(Network& network, const std::string& address, const Credentials& credentials);
  /// One that has called `desk`, which must outlive this.
  RemoteNode(JoinDesk& desk, Caller caller);
  ~RemoteNode();

  /// What the machine is.
  [[nodiscard]] NodeDescription describe();
  /// Of its process.
  [[nodiscard]] const std::string& identity() const noexcept { return identity_; }
  /// Where other workers reach it.
  [[nodiscard]] const std::string& data_address() const noexcept { return data_address_; }

  /// The model that `share` has, with whatever the worker lacks of the files' headers.
  void open(const ModelShare& share, const ComputeRules& rules, PhaseReport& report);
  /// Sends what the worker lacks of the model for `units`; the bytes of it.
  int64_t send_parts(const ModelShare& share, const StageUnits& units, PhaseReport& report);
  [[nodiscard]] NodeCosts probe();
  /// For whoever measures the way to it.
  [[nodiscard]] std::string measure_key();
  /// The way from here to it, and from it to another worker.
  [[nodiscard]] NodeLink measure_from_head();
  /// Only tries the way from here to it.
  void reach_from_head();
  [[nodiscard]] NodeLink measure_to(const std::string& address, const std::string& key);
  /// Bytes of the packed weights.
  int64_t load(const StageUnits& units, PhaseReport& report);
  /// `kv_bytes`: of the stage's cache.
  [[nodiscard]] StageKeys prepare(const StageRules& rules, const std::string& wire_dtype, int64_t& kv_bytes);
  /// Has it connect to the next stage.
  void join(const std::string& address, const std::string& key);
  void begin();
  /// A data connection to it.
  [[nodiscard]] std::unique_ptr<Link> open_link(const std::string& purpose, const std::string& key);

 private:
  [[nodiscard]] std::unique_ptr<Link> open_measure_link();
  int64_t send_missing(const ModelShare& share, nlohmann::json fields, PhaseReport& report);

  Network* network_ = nullptr;  ///< by which it is called; null: it has called
  JoinDesk* desk_ = nullptr;    ///< that it has called
  std::string id_;              ///< its address, or the name under which it has joined
  std::string name_;            ///< "worker 10.0.0.2:8100"
  std::string data_address_;
  std::string identity_;
  std::unique_ptr<ControlClient> control_;
};

}  // namespace headrace::cluster
