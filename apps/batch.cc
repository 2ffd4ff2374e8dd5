// headrace batch: answers a file of requests in OpenAI's batch format, many at once.
#include <fmt/format.h>

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <deque>
#include <limits>
#include <list>
#include <mutex>
#include <set>

#include "apps/batch_files.h"
#include "apps/commands.h"
#include "apps/interrupt.h"
#include "apps/load_flags.h"
#include "base/error.h"
#include "base/options_command_line.h"
#include "openai/pending_answer.h"

namespace headrace {
namespace {

using openai::BatchLine;
using openai::ErrorAnswer;
using openai::PendingAnswer;

struct BatchSettings {
  std::string model, input, output;
  LoadOptions load;
};

/// Keeps enough requests in the model's queue, and writes each result as it comes.
class BatchRun {
 public:
  BatchRun(Model& model, std::deque<BatchLine> lines, BatchResults& results)
      : model_(model), lines_(std::move(lines)), total_(lines_.size()), results_(results) {}
  /// What still runs is given up: events of it come here until then.
  ~BatchRun() { stop(); }
  BatchRun(const BatchRun&) = delete;
  BatchRun& operator=(const BatchRun&) = delete;

  /// False: stopped by Ctrl-C.
  bool run() {
    const InterruptGuard guard;
    ProgressLine progress("Answering", static_cast<double>(std::max<size_t>(total_, 1)), ProgressUnit::kShare);
    while (finished_ < total_) {
      if (guard.interrupted()) return false;
      while (!lines_.empty() && running_.size() < kWindow) start(lines_.front()), lines_.pop_front();
      wait_for_events();
      progress.update(static_cast<double>(finished_));
    }
    return true;
  }
  [[nodiscard]] size_t finished() const noexcept { return finished_; }
  [[nodiscard]] size_t refused() const noexcept { return refused_; }

 private:
  /// Requests that the model has at once: more than it computes together, so that its scheduler has a choice.
  static constexpr size_t kWindow = 1024;

  struct Running {
    std::string custom_id, request_id;
    PendingAnswer answer;
    std::vector<RequestId> requests;
  };
  struct Arrived {
    std::list<Running>::iterator running;
    size_t index;
    GenerationEvent event;
  };

  void start(const BatchLine& line) {
    const bool is_chat = line.url == "/v1/chat/completions";
    const std::string request_id = fmt::format("{}-{}", is_chat ? "chatcmpl" : "cmpl", ++number_);
    try {
      openai::AnswerHead head{
          .id = request_id, .model = model_.name(), .created = std::time(nullptr), .fingerprint = {}};
      PendingAnswer answer =
          is_chat ? pending(head, openai::read_chat_request(line.body, model_.default_params(), {}), format_)
                  : pending(head, openai::read_completion_request(line.body, model_.default_params(), {}));
      running_.push_back({line.custom_id, request_id, std::move(answer), {}});
    } catch (const Error& error) {
      return write(line.custom_id, request_id, openai::error_answer(error));
    }
    const auto running = std::prev(running_.end());
    std::vector<Request>& requests = running->answer.requests();
    bool ended = false;
    for (size_t i = 0; i < requests.size(); ++i) ended = !submit(running, i, std::move(requests[i])) || ended;
    if (ended) finish(running);
  }

  /// `format`: of a chat's answers.
  template <class Body, class... Format>
  [[nodiscard]] PendingAnswer pending(const openai::AnswerHead& head, const Body& body, const Format&... format) {
    if (body.common.stream)
      throw openai::RequestError("invalid_value", "stream", "stream: results of a batch are whole");
    return PendingAnswer(openai::plan_answer(head, body, model_, format...));
  }

  /// False: refused, and it was the line's last one that has not ended.
  [[nodiscard]] bool submit(std::list<Running>::iterator running, size_t index, Request request) {
    try {
      count_unfinished(1);
      running->requests.push_back(model_.submit(std::move(request), [this, running, index](GenerationEvent&& event) {
        push({running, index, std::move(event)});
      }));
      return true;
    } catch (const Error& error) {
      count_unfinished(-1);
      return !running->answer.fail(error);
    }
  }

  void finish(std::list<Running>::iterator running) {
    write(running->custom_id, running->request_id, running->answer.body());
    running_.erase(running);
  }

  void count_unfinished(int64_t more) {
    const std::lock_guard lock(mutex_);
    unfinished_ += more;
  }

  void push(Arrived arrived) {
    const std::lock_guard lock(mutex_);
    if (arrived.event.last) --unfinished_;
    arrived_.push_back(std::move(arrived));
    wake_.notify_one();
  }

  void wait_for_events() {
    std::deque<Arrived> events;
    {
      std::unique_lock lock(mutex_);
      wake_.wait_for(lock, std::chrono::milliseconds(100), [this] { return !arrived_.empty(); });
      events.swap(arrived_);
    }
    for (Arrived& arrived : events) {
      if (arrived.running->answer.add(arrived.index, std::move(arrived.event))) finish(arrived.running);
    }
  }

  void write(const std::string& custom_id, const std::string& request_id, const ErrorAnswer& answer) {
    results_.add(openai::batch_result_line(custom_id, request_id, answer));
    ++finished_;
    if (answer.status != 200) ++refused_;
  }

  /// What is running is given up; the results so far stay.
  void stop() {
    for (const Running& running : running_) {
      for (const RequestId id : running.requests) model_.cancel(id);
    }
    std::unique_lock lock(mutex_);
    wake_.wait(lock, [this] { return unfinished_ == 0; });
  }

  Model& model_;
  const openai::MessageFormat format_ = openai::find_message_format(model_.chat_template(), "auto", "auto");
  std::deque<BatchLine> lines_;
  size_t total_;
  BatchResults& results_;
  std::list<Running> running_;
  size_t finished_ = 0, refused_ = 0, number_ = 0;

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Arrived> arrived_;
  int64_t unfinished_ = 0;  // requests whose last event has not come
};

}  // namespace

int command_batch(std::span<const std::string> arguments) {
  BatchSettings s;
  const CommandLine command(
      "headrace batch",
      "Answers the requests of a file in OpenAI's batch format, one JSON object a line (custom_id, method, url, body; "
      "url /v1/chat/completions or /v1/completions), many at once, and appends each result to another file as soon as "
      "it is there, so not in order. Run it again with the same files to go on after a stop: what has a result is not "
      "computed again.",
      {{.name = "INPUT", .target = &s.input, .help = "file of requests, JSONL"},
       {.name = "OUTPUT", .target = &s.output, .help = "file of results, JSONL"}},
      {{"Model", {{.name = "model", .letter = 'm', .target = &s.model, .help = kModelHelp}}},
       {"Loading", load_flags(s.load)},
       {"Serving", serving_flags(s.load)}},
      "Exit code: 0, 1 for an error, 2 if some requests were refused (their results say why), 130 after Ctrl-C.");
  if (command.parse(arguments) == CommandLine::Outcome::kHelp) {
    std::fputs(command.help().c_str(), stdout);
    return 0;
  }
  if (s.model.empty()) throw Error(ErrorCode::kInvalidArgument, "no model: name it with --model");
  // The file is the queue.
  s.load.max_queued_requests = std::numeric_limits<int32_t>::max();
  s.load.max_queued_tokens = std::numeric_limits<int64_t>::max();
  BatchResults results(s.output, s.input);
  const std::set<std::string>& done = results.done();
  std::deque<BatchLine> lines = read_batch(s.input, done);
  if (!done.empty())
    fmt::print(stderr, "{} results are there already; {} requests are left\n", done.size(), lines.size());

  if (lines.empty()) return 0;
  auto progress = show_loading(s.model, s.load);
  Model model = Model::load(s.model, s.load);
  progress.reset();
  fmt::print(stderr, "KV cache of {} tokens; sequences of up to {} tokens\n", model.kv_cache_tokens(),
             model.max_model_len());
  const auto start = std::chrono::steady_clock::now();
  BatchRun run(model, std::move(lines), results);
  const bool whole = run.run();
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const ModelFigures figures = model.figures();
  fmt::print(stderr, "{} results in {:.1f} s: {} prompt tokens ({} cached), {} answer tokens, {:.1f} tok/s\n",
             run.finished(), seconds, figures.prompt_tokens, figures.cached_tokens, figures.completion_tokens,
             static_cast<double>(figures.completion_tokens) / std::max(seconds, 1e-9));
  if (!whole) {
    fmt::print(stderr, "stopped; the same command goes on from here\n");
    return 130;
  }
  if (run.refused() > 0) fmt::print(stderr, "{} requests were refused; their results say why\n", run.refused());
  return run.refused() > 0 ? 2 : 0;
}

}  // namespace headrace
