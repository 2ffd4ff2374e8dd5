#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "cluster/credentials.h"
#include "cluster/handshake.h"
#include "cluster/heartbeat.h"
#include "cluster/model_share.h"
#include "cluster/pipeline_executor.h"
#include "cluster/placement.h"
#include "cluster/remote_node.h"
#include "engine/stage_assembly.h"
#include "headrace/cluster.h"

namespace headrace::cluster {

/// The head's side of a cluster: joins workers into a pipeline, and joins them again when one was lost and has come
/// back; meanwhile it has no room for steps.
/// Threading: the functions of Executor as there; figures() from any thread.
class Cluster final : public Executor {
 public:
  /// Connects, measures, places, loads and begins. Throws Error, one line that names the worker. Keeps what `site`
  /// says outlives the stages.
  Cluster(const StageSite& site, const ClusterOptions& options);
  ~Cluster() override;

  /// What an engine is told of the stages, but for the executor. Once.
  [[nodiscard]] StageAssembly take_assembly() noexcept { return std::move(assembly_); }

  void submit(StepPlan plan) override;
  [[nodiscard]] bool can_take() const override;
  [[nodiscard]] bool wait(bool for_room) override;
  void wake() noexcept override;
  void rehearse(bool on) noexcept override;
  [[nodiscard]] Result<std::monostate> receive(StepResult& result) override;
  [[nodiscard]] int64_t losses() const override;
  [[nodiscard]] double seconds_lost() const override;

  [[nodiscard]] ClusterFigures figures() const;

 private:
  struct Node {
    std::string name;    ///< its address or, if it joins, its name
    bool joins = false;  ///< calls, and is not called
    StageUnits units;
    bool gathers = false;  ///< sends only the rows that are sampled: the next one computes the output alone
    std::string isa;
    int32_t threads = 0;
    int64_t memory_bytes = 0, weight_bytes = 0, kv_bytes = 0;
    std::unique_ptr<RemoteNode> remote;

    [[nodiscard]] std::string text() const { return cat("worker ", name); }
    /// With the address where others reach it.
    [[nodiscard]] std::string place_text() const {
      return joins ? cat(text(), " (", remote->data_address(), ')') : text();
    }
  };

  /// `task(report)`, a phase of the start of `node`, whose errors then name both.
  template <class Task>
  auto run_phase(const std::string& node, const StartPhase& phase, const Task& task) const;
  /// Waits for workers to join.
  void gather(JoinDesk::Places places);
  void connect();
  [[nodiscard]] std::unique_ptr<RemoteNode> reach(const Node& node);
  /// Those that join must be there again.
  void wait_for_joined();
  /// Throws Error where two names stand for one process.
  void refuse_doubles() const;
  /// Throws Error for a machine that cannot be of this cluster.
  void check_node(const std::string& name, const NodeDescription& description) const;
  [[nodiscard]] Placement find_placement(const StageSite& site);
  /// Of the ways that activations take; tries every pair of machines that must talk.
  void measure_links(std::vector<NodeOffer>& offers);
  void take_placement(const StageSite& site, const Placement& placement);
  void load(const StageSite& site);
  void load_workers();
  void load_worker(Node& node);
  void build_head_stages(const StageSite& site);
  /// Connects the stages of all nodes and begins.
  void link_up();
  [[nodiscard]] std::vector<ClusterNode> describe_nodes() const;
  void end_heartbeats();
  /// Of the thread that joins lost workers again.
  void keep();
  void rejoin();
  void lost(size_t worker, const Error& error);
  void show_up(size_t worker, bool up);
  void look_again();
  [[nodiscard]] std::shared_ptr<PipelineExecutor> pipeline() const;

  const ClusterOptions options_;
  const ArchSpec& spec_;
  const ComputeRules rules_;
  const Isa isa_;
  const Credentials credentials_;
  std::unique_ptr<Network> network_;
  const ModelShare share_;
  std::unique_ptr<JoinDesk> desk_;  ///< where there are workers that join
  StageAssembly assembly_;
  StageRules stage_rules_;
  StageUnits first_units_;
  bool output_on_head_ = true, head_gathers_ = false;
  std::string placement_text_;
  ClusterNode head_;          ///< what does not change
  std::vector<Node> nodes_;   ///< of whoever forms the pipeline: the constructor, then the keeper
  HeadStages head_stages_;    ///< while no pipeline has them
  bool has_begun_ = false;    ///< from then on machines only join again
  std::string last_failure_;  ///< to join again; told once

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::shared_ptr<PipelineExecutor> pipeline_;  ///< none while workers are joined again
  std::vector<std::shared_ptr<Heartbeat>> heartbeats_;
  std::vector<ClusterNode> shown_;  ///< the machines, without what changes from step to step
  int32_t out_ = 0;                 ///< steps submitted and not received
  int32_t refused_ = 0;             ///< of them, the first: those that no pipeline has taken
  std::optional<EpochId> epoch_;    ///< of the last step that a pipeline has taken
  std::optional<EpochId> gone_;     ///< whose cache was with a pipeline that is no more
  std::optional<Error> early_;      ///< a loss while there was no pipeline that could be told
  bool stop_ = false;
  bool is_lost_ = false;
  std::chrono::steady_clock::time_point lost_at_;
  int64_t losses_ = 0;
  std::thread keeper_;  ///< last
};

/// A model's stages on this machine and options.workers. `made` is told of the cluster, which lives as long as the
/// assembly's executor.
[[nodiscard]] StageAssembly assemble_cluster(const StageSite& site, const ClusterOptions& options,
                                             const std::function<void(const Cluster&)>& made);

}  // namespace headrace::cluster
