#include "cluster/cluster.h"

#include <utility>

#include "base/log.h"
#include "cluster/named_error.h"

namespace headrace::cluster {
namespace {

/// Between two tries to join lost workers again.
constexpr std::chrono::milliseconds kRejoinPause{500};

}  // namespace

Cluster::~Cluster() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  if (keeper_.joinable()) keeper_.join();
  end_heartbeats();
  pipeline_.reset();
}

void Cluster::end_heartbeats() {
  std::vector<std::shared_ptr<Heartbeat>> ended;
  const std::lock_guard lock(mutex_);
  ended.swap(heartbeats_);  // destroyed after the lock is gone: a heartbeat that waits for it could not end
  for (const auto& heartbeat : ended) heartbeat->stop();
}

std::shared_ptr<PipelineExecutor> Cluster::pipeline() const {
  const std::lock_guard lock(mutex_);
  return pipeline_;
}

void Cluster::submit(StepPlan plan) {
  std::shared_ptr<PipelineExecutor> current;
  {
    const std::lock_guard lock(mutex_);
    ++out_;
    // Machines that have come back hold nothing of what earlier steps of the epoch computed.
    if (!pipeline_ || plan.epoch == gone_) {
      ++refused_;
      return;
    }
    epoch_ = plan.epoch;
    current = pipeline_;
  }
  current->submit(std::move(plan));
}

bool Cluster::can_take() const {
  const auto current = pipeline();
  return current && current->can_take();
}

bool Cluster::wait(bool for_room) {
  std::shared_ptr<PipelineExecutor> current;
  {
    const std::lock_guard lock(mutex_);
    if (refused_ > 0) return true;
    current = pipeline_;
  }
  return current->wait(for_room);
}

void Cluster::wake() noexcept {
  if (const auto current = pipeline()) current->wake();
}

void Cluster::rehearse(bool on) noexcept {
  if (const auto current = pipeline()) current->rehearse(on);
}

Result<std::monostate> Cluster::receive(StepResult& result) {
  std::shared_ptr<PipelineExecutor> current;
  {
    const std::lock_guard lock(mutex_);
    if (refused_ == 0) current = pipeline_;
  }
  auto received = current
                      ? current->receive(result)
                      : Error(ErrorCode::kUnavailable, "a machine of the cluster was lost, and what it had computed");
  {
    const std::lock_guard lock(mutex_);
    if (refused_ > 0) --refused_;
    --out_;
  }
  changed_.notify_all();
  return received;
}

int64_t Cluster::losses() const {
  const std::lock_guard lock(mutex_);
  // The keeper may not have seen the last one yet.
  return losses_ + (!is_lost_ && pipeline_ && pipeline_->is_lost() ? 1 : 0);
}

double Cluster::seconds_lost() const {
  const std::lock_guard lock(mutex_);
  if (!is_lost_) return 0;
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - lost_at_).count();
}

void Cluster::lost(size_t worker, const Error& error) {
  const Error named = named_error(cat("worker ", nodes_[worker].name), error);
  show_up(worker, false);
  std::shared_ptr<PipelineExecutor> current;
  {
    const std::lock_guard lock(mutex_);
    current = pipeline_;
    if (!current) early_ = named;
  }
  if (current) current->lose(named);
}

void Cluster::show_up(size_t worker, bool up) {
  const std::lock_guard lock(mutex_);
  if (worker + 1 < shown_.size()) shown_[worker + 1].up = up;
}

void Cluster::look_again() {
  // The keeper looks under this lock: it does not miss what changed before.
  { const std::lock_guard lock(mutex_); }
  changed_.notify_all();
}

void Cluster::keep() {
  while (true) {
    std::shared_ptr<PipelineExecutor> old;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return stop_ || is_lost_ || (pipeline_ && pipeline_->is_lost()); });
      if (stop_) return;
      if (!is_lost_) {
        is_lost_ = true;
        lost_at_ = std::chrono::steady_clock::now();
        ++losses_;
      }
      // All steps that are out have failed; whoever waits for them hears of it first.
      changed_.wait(lock, [this] { return stop_ || out_ == 0; });
      if (stop_) return;
      old = std::exchange(pipeline_, nullptr);
      if (old) gone_ = epoch_;
    }
    end_heartbeats();
    if (old) head_stages_ = old->stop();
    old.reset();
    rejoin();
    std::unique_lock lock(mutex_);
    if (is_lost_) changed_.wait_for(lock, kRejoinPause, [this] { return stop_; });
  }
}

void Cluster::rejoin() {
  try {
    connect();
    load_workers();
    link_up();
    log_info("all workers are there again");
    last_failure_.clear();
  } catch (const Error& error) {
    if (last_failure_ != error.message()) log_warn("not joined again yet: {}", error.message());
    last_failure_ = error.message();
  }
}

ClusterFigures Cluster::figures() const {
  ClusterFigures all;
  std::shared_ptr<PipelineExecutor> current;
  std::vector<std::shared_ptr<Heartbeat>> heartbeats;
  {
    const std::lock_guard lock(mutex_);
    current = pipeline_;
    heartbeats = heartbeats_;
    all.nodes = shown_;
    all.up = !is_lost_;
    all.losses = losses_;
  }
  all.placement = placement_text_;
  for (size_t i = 0; i < heartbeats.size(); ++i) {
    const HeartbeatFigures beats = heartbeats[i]->figures();
    all.nodes[i + 1].up = all.nodes[i + 1].up && heartbeats[i]->seconds_since_heard() < HeartbeatLimits{}.silence_s;
    all.nodes[i + 1].round_trip_seconds = beats.mean_round_trip_s;
    all.nodes[i + 1].missed_heartbeats = beats.num_missed;
  }
  if (!current) return all;
  const PipelineFigures now = current->figures();
  all.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - now.begun).count();
  all.steps = now.steps;
  all.tokens = now.tokens;
  all.steps_in_flight = now.in_flight;
  for (size_t i = 0; i < all.nodes.size(); ++i) {
    ClusterNode& node = all.nodes[i];
    const StageFigures& stage = now.stages[i];
    node.busy_seconds = stage.seconds.cpu;
    node.compute_seconds = stage.seconds.compute;
    node.serialise_seconds = stage.seconds.serialise;
    node.wait_seconds = stage.seconds.wait;
    node.wire_seconds = stage.seconds.wire;
    node.bytes_sent = stage.links.bytes_sent;
    node.bytes_received = stage.links.bytes_received;
  }
  return all;
}

StageAssembly assemble_cluster(const StageSite& site, const ClusterOptions& options,
                               const std::function<void(const Cluster&)>& made) {
  auto cluster = std::make_unique<Cluster>(site, options);
  made(*cluster);
  StageAssembly assembly = cluster->take_assembly();
  assembly.executor = std::move(cluster);
  return assembly;
}

}  // namespace headrace::cluster
