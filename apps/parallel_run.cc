#include "apps/parallel_run.h"

#include <fmt/format.h>

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <mutex>

#include "apps/interrupt.h"

namespace headrace {
namespace {

class ParallelRun {
 public:
  ParallelRun(Model& model, const ChatSettings& settings, const std::vector<std::string>& prompts)
      : model_(model), settings_(settings), prompts_(prompts), answers_(prompts.size()) {}
  /// What still runs is given up: events of it come here until then.
  ~ParallelRun() {
    cancel();
    std::unique_lock lock(mutex_);
    wake_.wait(lock, [this] { return ended_ == started_; });
  }
  ParallelRun(const ParallelRun&) = delete;
  ParallelRun& operator=(const ParallelRun&) = delete;

  ParallelOutcome run(size_t at_once) {
    const InterruptGuard guard;
    const auto begin = std::chrono::steady_clock::now();
    bool stopped = false;
    while (printed_ < prompts_.size()) {
      if (!stopped && guard.interrupted()) {
        stopped = true;
        cancel();
      }
      while (!stopped && started_ < prompts_.size() && started_ - ended() < at_once) start();
      if (stopped && printed_ == started_) break;
      if (!print_next()) return ParallelOutcome::kStopped;  // nobody reads any more
    }
    if (!settings_.quiet) report(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    if (stopped) return ParallelOutcome::kStopped;
    return failed_ > 0 ? ParallelOutcome::kSomeFailed : ParallelOutcome::kAllAnswered;
  }

 private:
  struct Pending {
    RequestId id{};
    std::string text;
    std::string error;
    bool ended = false;
  };

  [[nodiscard]] size_t ended() {
    const std::lock_guard lock(mutex_);
    return ended_;
  }

  void cancel() {
    for (size_t i = printed_; i < started_; ++i) model_.cancel(answers_[i].id);
  }

  void start() {
    const size_t i = started_++;
    std::vector<Message> messages;
    if (!settings_.system.empty()) messages.push_back({"system", settings_.system});
    messages.push_back({"user", prompts_[i]});
    Request request{.input = prompts_[i], .sampling = settings_.params};
    if (!settings_.raw) request.input = std::move(messages);
    try {
      answers_[i].id = model_.submit(std::move(request), [this, i](GenerationEvent&& event) { take(i, event); });
    } catch (const Error& error) {
      take(i, {.error = error, .last = true});
    }
  }

  void take(size_t i, const GenerationEvent& event) {
    const std::lock_guard lock(mutex_);
    answers_[i].text += event.text;
    if (event.error) answers_[i].error = event.error->message();
    if (!event.last) return;
    answers_[i].ended = true;
    ++ended_;
    prompt_tokens_ += event.usage.prompt_tokens;
    completion_tokens_ += event.usage.completion_tokens;
    wake_.notify_one();
  }

  /// Prints the next answers in order, if they come soon. False: they cannot be written.
  [[nodiscard]] bool print_next() {
    std::string text;
    {
      std::unique_lock lock(mutex_);
      const size_t ended_before = ended_;
      const auto something_ended = [&] { return answers_[printed_].ended || ended_ != ended_before; };
      if (!wake_.wait_for(lock, std::chrono::milliseconds(100), something_ended)) return true;
      while (printed_ < prompts_.size() && answers_[printed_].ended) {
        Pending& answer = answers_[printed_++];
        const bool failed = !answer.error.empty();
        failed_ += failed ? 1 : 0;
        text += fmt::format("[{}] {}\n", printed_, failed ? "error: " + answer.error : std::move(answer.text));
      }
    }
    // Without the lock: a slow reader must not hold the model's thread back.
    return std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
  }

  void report(double seconds) const {
    fmt::print(stderr, "[{} prompts of {} tokens; {} answer tokens in {:.2f} s, {:.1f} tok/s]\n", ended_,
               prompt_tokens_, completion_tokens_, seconds,
               static_cast<double>(completion_tokens_) / std::max(seconds, 1e-9));
  }

  Model& model_;
  const ChatSettings& settings_;
  const std::vector<std::string>& prompts_;
  size_t started_ = 0, printed_ = 0, failed_ = 0;

  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<Pending> answers_;
  size_t ended_ = 0;
  int64_t prompt_tokens_ = 0, completion_tokens_ = 0;
};

}  // namespace

ParallelOutcome run_parallel(Model& model, const ChatSettings& settings, const std::vector<std::string>& prompts,
                             int32_t at_once) {
  return ParallelRun(model, settings, prompts).run(static_cast<size_t>(at_once));
}

}  // namespace headrace
