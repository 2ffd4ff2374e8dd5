#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "cluster/activation_frames.h"
#include "cluster/channel.h"
#include "cluster/frame_sender.h"
#include "cluster/link.h"
#include "cluster/stage_times.h"
#include "cluster/stop_watch.h"
#include "model/stage.h"

namespace headrace::cluster {

/// The links of a worker's stage.
struct StageLinks {
  std::unique_ptr<Link> head;        ///< plans come, reports go; from the last stage rows or results too
  std::unique_ptr<Link> upstream;    ///< activations of the stage before
  std::unique_ptr<Link> downstream;  ///< activations for the next one; none from the last stage
};

/// Runs a worker's stage: takes plans and activations, which receiver threads fetch while a step computes, and leaves
/// what it made to sender threads. Activations and plans of an epoch that is over are dropped.
class StageService {
 public:
  struct Config {
    int64_t hidden = 0;
    WireDtype wire = WireDtype::kF32;
  };
  /// `ended` is called once, on a thread of the service, when a link is gone.
  StageService(Config config, std::unique_ptr<Stage> stage, StageLinks links, std::function<void(const Error&)> ended);
  ~StageService();

  /// Ends it: its stage, for another service.
  [[nodiscard]] std::unique_ptr<Stage> stop();

 private:
  struct Incoming {
    FrameHeader header;
    double at = 0;  ///< by clock_
    std::vector<std::byte> payload;
  };

  void receive(Link& link, FrameKind kind, Channel<Incoming>& channel);
  void compute();
  /// Activations of a plan; nullopt: there will be none.
  [[nodiscard]] std::optional<Incoming> activations_for(const StepPlan& plan);
  void run_step(const StepPlan& plan, const Incoming& activations, StageReport report);
  /// `rehearses`: rows do not matter, and only the head is sent any.
  void pass_on(const StepPlan& plan, StageReport done, bool rehearses);
  void report(const StepPlan& plan, const StageReport& done, StepResult& result);
  void report_failure(const StepPlan& plan, const Error& error);
  void end(const Error& error);

  const Config config_;
  const StopWatch clock_;  ///< of StageMoments
  std::unique_ptr<Stage> stage_;
  StageLinks links_;
  std::function<void(const Error&)> ended_;
  std::atomic<bool> has_ended_ = false;
  Channel<Incoming> plans_, activations_;
  std::optional<Incoming> early_;  // activations of a later epoch than the plan's; of the compute thread
  StageOutput output_;             // of the compute thread
  std::vector<float> rows_;        // of the compute thread
  double sending_before_ = 0;
  std::unique_ptr<FrameSender> to_head_, to_next_;
  std::vector<std::thread> threads_;  // last: begin when all else is there
};

}  // namespace headrace::cluster
