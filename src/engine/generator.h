#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <vector>

#include "engine/active_request.h"
#include "engine/engine.h"
#include "engine/row_preparation.h"
#include "engine/row_sampler.h"

namespace headrace {

/// Bounds on requests that wait: to begin, where a request beyond them is refused, or for a machine.
struct QueueLimits {
  int32_t max_requests = 4096;
  int64_t max_tokens = int64_t{1} << 24;  ///< of their prompts
  double rejoin_seconds = 30;             ///< that requests which have begun wait for a lost machine to come back
};

struct GeneratorFigures {
  int64_t queued_requests = 0;  ///< not begun
  int64_t queued_tokens = 0;    ///< of their prompts
  int64_t running_requests = 0;
  int64_t finished = 0, cancelled = 0, failed = 0, refused = 0;
  int64_t prompt_tokens = 0;  ///< of requests that have begun
  int64_t cached_tokens = 0;
  int64_t completion_tokens = 0;
  int64_t failed_steps = 0;
  double step_seconds = 0;          ///< that stages have computed, all together
  double seconds_without_step = 0;  ///< while there is work: since the last step, or since the work came
  double backlog_seconds = 0;       ///< that prompts and answers of what is queued would take
  SchedulerFigures scheduler;
  CacheFigures cache;
};

/// Answers any number of requests at once: a thread that composes steps, runs them, samples, and gives tokens and text
/// to the requests' sinks. Threading: every function from any thread. Borrows engine and tokenizer; nobody else may
/// use the engine meanwhile.
class Generator {
 public:
  /// `vocab_size`: tokens that may be sampled; a model's output may have more rows, which are padding.
  Generator(Engine& engine, const Tokenizer& tokenizer, std::vector<TokenId> end_tokens, int32_t vocab_size,
            QueueLimits limits = {});
  /// Cancels what is not finished; sinks get their last events.
  ~Generator();

  /// Begins a request and returns at once. Throws Error: kInvalidArgument for one that can never be served,
  /// kUnavailable when too many wait.
  RequestId submit(GenerationInput input, EventSink sink);
  /// The request's sink gets a last event with kCancelled, unless it has ended already.
  void cancel(RequestId request);
  [[nodiscard]] GeneratorFigures figures() const;

 private:
  struct Place {
    ActiveRequest* request = nullptr;
    Continuation* continuation = nullptr;
  };

  void run() noexcept;
  void wake() noexcept;
  /// Takes what others have asked for, waiting for it where there is nothing else to do. False: the generator ends.
  [[nodiscard]] bool take_mail();
  void admit(std::unique_ptr<ActiveRequest> request);
  /// Ends the choices that go on still.
  void end_all(ActiveRequest& request, FinishReason reason);
  void cancel_now(ActiveRequest& request);
  void expire();
  /// Whether more could be composed if the executor had room.
  [[nodiscard]] bool submit_steps();
  /// A step is on its way: notes which requests begin, and has masks computed meanwhile.
  void prepare_rows(const StepPlan& plan);
  void receive_step();
  void take_outputs(const StepResult& result);
  void score_prompt(ActiveRequest& request, int32_t position, std::span<const float> logits);
  void finish_scored(ActiveRequest& request);
  /// The first token of a request is about to be sampled: its other choices begin from the same logits.
  void fork_choices(ActiveRequest& request, const SampleJob& first);
  void take_token(ActiveRequest& request, Continuation& continuation, const SampleJob& job);
  /// The request has ended: its blocks and its place in the queue are free.
  void drop(ActiveRequest& request);
  void leave_queue(ActiveRequest& request);
  /// After a step that failed. Where a machine is lost and may come back, nothing else is: requests wait, and what they
  /// had is computed again.
  void recover(const Error& error);
  void give_up_waiting();
  void fail(ActiveRequest& request, const Error& error);
  /// Of requests that have begun; the rest has lost nothing.
  void fail_begun(const Error& error);
  void publish_figures(bool stepped);
  [[nodiscard]] static double backlog_seconds(const GeneratorFigures& figures);

  Engine& engine_;
  const Tokenizer& tokenizer_;
  const std::vector<TokenId> end_tokens_;
  const int32_t vocab_size_;
  const QueueLimits limits_;
  /// Else masks are made by all compute threads once the model is done: a thread more would make them wait for each
  /// other within steps, which costs several times as much.
  const bool has_spare_cpu_;

  // Of the generator's thread.
  RowSampler sampler_;
  RowPreparation preparation_;
  std::unordered_map<RequestId, std::unique_ptr<ActiveRequest>> requests_;
  std::unordered_map<SequenceId, Place> sequences_;
  std::vector<SampleJob> jobs_;
  uint64_t next_sequence_ = 1;
  int32_t steps_out_ = 0;
  bool idle_ = false;   // nothing can be computed now
  int64_t losses_ = 0;  // of machines, so far as the engine has begun anew for them
  StepResult result_;
  GeneratorFigures counts_;

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<std::unique_ptr<ActiveRequest>> arrived_;
  std::vector<RequestId> cancelled_;
  GeneratorFigures published_;
  int64_t queued_requests_ = 0, queued_tokens_ = 0, refused_ = 0;
  uint64_t next_request_ = 1;
  bool busy_ = false;       // there is work
  double progress_at_ = 0;  // engine's clock: the last step, or when the work came
  bool stop_ = false;

  std::thread thread_;  // last: begins when all else is there
};

}  // namespace headrace
