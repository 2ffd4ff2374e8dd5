#pragma once

#include <condition_variable>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "cluster/control.h"
#include "cluster/handshake.h"
#include "cluster/heartbeat.h"
#include "cluster/node_machine.h"
#include "cluster/part_store.h"
#include "cluster/stage_service.h"

namespace headrace::cluster {

/// What a worker is told when it is started.
struct WorkerConfig {
  std::string listen = "127.0.0.1:8100";  ///< for the head and other workers
  std::string join = {};                  ///< a head to call, which then does not call this worker; empty: heads call
  std::string name = {};                  ///< under which it joins
  std::string advertise = {};             ///< where other workers reach one that joins; empty: found
  std::string secret_file = {};           ///< empty: heads without a secret only
  TlsFiles tls = {};
  std::string model = {};    ///< a copy of the model on this machine; empty: none
  int64_t memory_bytes = 0;  ///< for weights, workspace and cache; 0, to a worker: most of what is free
  int64_t disk_bytes = 0;    ///< for parts of models that heads have sent; 0: no limit
  Isa isa = Isa::kRef;
  int threads = 1;
};

/// One head's use of a worker: answers its questions, in this order:
///   describe           what this machine is
///   dial               opens a data connection to the head that it has joined, which then is one that the head opened
///   leave              why the head does not take it; nothing follows
///   open               a model, by its hash, and how it is computed; the answer may be that the manifest is needed
///   manifest           what the model's files hold
///   missing, received  what the head has to send of some units, and whether it came; first of none: the headers
///   ready              reads the headers
///   probe              what units take here
///   measured, reach    lets another machine measure the way to here; measures the way to another worker
///   load               packs the weights of units, which have come
///   prepare            makes the stage; the answer holds the keys that data connections begin with
///   join               connects to the next stage
///   begin              once all connections are there: runs steps
/// What comes in another order is refused by Error(kInvalidArgument). Threading: answer() on one thread, take_link() on
/// any.
class WorkerSession {
 public:
  /// `hang_up` ends the control link; from any thread.
  WorkerSession(NodeMachine& machine, const WorkerConfig& config, Network& network, DataKeys& keys,
                std::function<void()> hang_up);
  ~WorkerSession() { end(); }
  /// What it packed goes back to the machine.
  void end();

  /// Why the head has not taken this worker; empty: it has.
  [[nodiscard]] const std::string& farewell() const noexcept { return farewell_; }

  [[nodiscard]] nlohmann::json answer(const std::string& what, const nlohmann::json& fields,
                                      const TaskProgress& progress);
  /// A data connection that began with a key of this session.
  void take_link(const std::string& purpose, std::unique_ptr<Link> link);

 private:
  nlohmann::json describe() const;
  nlohmann::json dial(const nlohmann::json& fields);
  nlohmann::json open(const nlohmann::json& fields, const TaskProgress& progress);
  nlohmann::json take_manifest(const nlohmann::json& fields);
  nlohmann::json missing(const nlohmann::json& fields);
  nlohmann::json receive_ranges(const TaskProgress& progress);
  nlohmann::json make_ready();
  nlohmann::json probe();
  nlohmann::json reach(const nlohmann::json& fields);
  nlohmann::json load(const nlohmann::json& fields, const TaskProgress& progress);
  nlohmann::json prepare(const nlohmann::json& fields);
  nlohmann::json join(const nlohmann::json& fields);
  nlohmann::json begin();
  void require_ready(const char* what) const;
  [[nodiscard]] StageUnits units_of(const nlohmann::json& fields) const;
  [[nodiscard]] std::unique_ptr<Link> wait_for_link(const std::string& purpose);

  NodeMachine& machine_;
  const WorkerConfig& config_;
  Network& network_;
  DataKeys& keys_;
  std::function<void()> hang_up_;

  int64_t memory_bytes_;  ///< for weights, workspace and cache
  std::string farewell_;
  std::string hash_;       ///< of the model
  bool is_ready_ = false;  ///< the machine has that model open
  ComputeRules rules_;
  std::string copy_;                  ///< argument of open_model, where this machine has the model itself
  std::unique_ptr<PartStore> parts_;  ///< else what the head has sent
  std::vector<uint32_t> expected_;    ///< ranges that the head is to send now

  std::unique_ptr<Stage> stage_;
  StageService::Config stage_config_;
  std::unique_ptr<Link> downstream_;
  std::unique_ptr<StageService> service_;
  std::unique_ptr<Heartbeat> heartbeat_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, std::unique_ptr<Link>> links_;  ///< by purpose, not taken yet
  std::vector<std::future<void>> measured_;             ///< by others, on threads of their own
};

}  // namespace headrace::cluster
