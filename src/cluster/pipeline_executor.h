#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "cluster/activation_codec.h"
#include "cluster/frame_sender.h"
#include "cluster/link.h"
#include "cluster/pipeline_figures.h"
#include "cluster/stage_times.h"
#include "cluster/step_places.h"
#include "model/stage.h"
#include "sched/executor.h"

namespace headrace::cluster {

/// What the head computes itself: the first stage, with the embedding, and, unless the last worker has it, the output.
struct HeadStages {
  std::unique_ptr<Stage> first;
  std::unique_ptr<Stage> output;
};

/// A worker whose stage waits for plans. Plans go to it and reports come back; from the last one rows or results too.
struct WorkerLink {
  std::string name;
  std::unique_ptr<Link> plans;
};

/// Runs steps over the head and its workers, several at a time: a plan goes to all stages at once, activations from
/// stage to stage, and what is sampled comes back. The head computes what has come back first, then the first stage of
/// the oldest plan. A step that fails, or a worker that is lost, fails all steps that are out.
/// Threading: the functions of Executor as there; the rest from any thread.
class PipelineExecutor final : public Executor {
 public:
  struct Config {
    int64_t hidden = 0;
    WireDtype wire = WireDtype::kF32;
    std::shared_ptr<StepTimeline> timeline = {};  ///< told of every step; none: null
  };
  /// `activations`: to the first worker. At least one worker.
  /// `on_loss` is called once, on some thread, when a worker is lost.
  PipelineExecutor(Config config, HeadStages stages, std::vector<WorkerLink> workers, std::unique_ptr<Link> activations,
                   std::function<void()> on_loss = {});
  ~PipelineExecutor() override;
  /// Ends it: its stages, for another pipeline.
  [[nodiscard]] HeadStages stop();

  void submit(StepPlan plan) override;
  [[nodiscard]] bool can_take() const override;
  [[nodiscard]] bool wait(bool for_room) override;
  void wake() noexcept override;
  void rehearse(bool on) noexcept override { rehearses_ = on; }
  [[nodiscard]] Result<std::monostate> receive(StepResult& result) override;

  /// The machine named in `error` is lost: all steps that are out fail, and none is taken any more.
  void lose(const Error& error);
  [[nodiscard]] bool is_lost() const;
  [[nodiscard]] PipelineFigures figures() const;

 private:
  struct Step {
    std::shared_ptr<const StepPlan> plan;
    std::vector<std::byte> payload;  ///< of the frame that brought the rows of the last stage
    StepResult result;
    StageTimes own;  ///< of the head
    HeadMoments moments;
    std::vector<WorkerMoments> workers;
    int32_t reports = 0;  ///< of workers
    bool has_result = false;
  };
  using StepPtr = std::shared_ptr<Step>;

  void compute();
  /// The first stage of a step.
  void compute_first(const StepPtr& step);
  /// The output of a step whose rows have come back.
  void compute_output(const StepPtr& step);
  void listen_to(size_t worker);
  [[nodiscard]] Result<std::monostate> take_frame(size_t worker, const FrameHeader& header,
                                                  std::vector<std::byte>& payload, double received);
  void fail_steps(EpochId epoch, const Error& error);
  [[nodiscard]] bool front_is_ready() const;
  /// The step that is out under that id, if it is of the present epoch.
  [[nodiscard]] StepPtr find(EpochId epoch, uint64_t id) const;
  [[nodiscard]] bool is_done(const Step& step) const;
  void count(const Step& step);
  [[nodiscard]] StepSlices place(const Step& step);

  const Config config_;
  std::atomic<bool> rehearses_ = false;
  HeadStages stages_;
  std::vector<WorkerLink> workers_;
  std::unique_ptr<Link> activations_link_;
  std::function<void()> on_loss_;

  mutable std::mutex mutex_;
  std::condition_variable work_;     // for the compute thread
  std::condition_variable results_;  // for whoever waits
  std::deque<StepPtr> out_;          // results not received yet, oldest first
  std::deque<StepPtr> first_;        // the first stage is to begin
  std::deque<StepPtr> returned_;     // rows are back
  std::optional<Error> failure_;     // of the present epoch
  std::optional<Error> lost_;
  EpochId epoch_{};
  bool woken_ = false;
  bool stop_ = false;
  PipelineFigures figures_;
  StepPlaces places_;

  StageOutput first_output_, last_output_;  // of the compute thread
  std::vector<float> rows_;                 // of the compute thread

  std::vector<std::unique_ptr<FrameSender>> plan_senders_;
  std::unique_ptr<FrameSender> activation_sender_;
  std::vector<std::thread> threads_;  // last: begin when all else is there
};

}  // namespace headrace::cluster
