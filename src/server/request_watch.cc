#include "server/request_watch.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "openai/answer_json.h"
#include "server/metrics.h"
#include "server/request_log.h"
#include "server/trace_exporter.h"

namespace headrace::server {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_between(Clock::time_point begin, Clock::time_point end) {
  return std::chrono::duration<double>(end - begin).count();
}

/// One answer.
struct WatchedChoice {
  Clock::time_point last_token_at{};
  int64_t tokens = 0;
};

/// One of the body's requests.
struct WatchedRequest {
  std::vector<WatchedChoice> choices;
  Usage usage = {};
  Clock::time_point usage_at{};        // when `usage` was told
  Clock::time_point first_token_at{};  // 0: there is none yet
  bool ended = false;

  [[nodiscard]] bool has_token() const { return first_token_at != Clock::time_point(); }
  [[nodiscard]] bool has_event() const { return usage_at != Clock::time_point(); }
};

constexpr size_t kMaxTracedRequests = 16;

}  // namespace

class RequestWatch::Impl {
 public:
  Impl(Metrics& metrics, RequestLog& log, TraceExporter* traces, const Exchange& exchange, RequestShape shape)
      : figures_(metrics.requests()),
        log_(log),
        traces_(traces),
        shape_(std::move(shape)),
        request_id_(exchange.request_id),
        caller_(exchange.caller.name),
        arrived_(exchange.request.arrived) {
    if (traces_ != nullptr) {
      context_ = continue_trace(exchange.request.header("traceparent"), exchange.request.header("tracestate"));
    }
    (void)request_at(0);
  }

  ~Impl() { end(Outcome::kError, 500); }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  void event(size_t index, const GenerationEvent& event) {
    WatchedRequest& request = request_at(index);
    const Clock::time_point now = Clock::now();
    request.usage = event.usage;
    request.usage_at = now;
    if (!event.tokens.empty()) take_tokens(request, event, now);
    if (event.last) finish(request, now);
  }

  void end(Outcome outcome, int status) {
    if (std::exchange(ended_, true)) return;
    const Clock::time_point now = Clock::now();
    for (WatchedRequest& request : requests_) {
      if (request.has_event()) finish(request, now);
    }
    figures_.count(outcome);
    if (outcome == Outcome::kRejected) {
      figures_.count(rejection_of(status));
    } else {
      figures_.observe(RequestHistogram::kParamN, shape_.choices);
      if (shape_.max_tokens > 0) figures_.observe(RequestHistogram::kParamMaxTokens, shape_.max_tokens);
    }
    write_line(outcome, status, now);
    if (traces_ != nullptr && context_.is_sampled) traces_->add(span(outcome, status, now));
  }

 private:
  WatchedRequest& request_at(size_t index) {
    while (requests_.size() <= index) {
      requests_.emplace_back().choices.resize(static_cast<size_t>(std::max(shape_.choices, 1)));
    }
    return requests_[index];
  }

  void take_tokens(WatchedRequest& request, const GenerationEvent& event, Clock::time_point now) {
    const auto index = static_cast<size_t>(std::max(event.choice, 0));
    if (index >= request.choices.size()) request.choices.resize(index + 1);
    WatchedChoice& choice = request.choices[index];
    if (!request.has_token()) {
      request.first_token_at = now;
      figures_.observe(RequestHistogram::kTimeToFirstToken, seconds_between(arrived_, now));
    }
    const auto tokens = static_cast<int64_t>(event.tokens.size());
    if (choice.tokens > 0) {
      // Tokens whose text came together took a step each.
      const double gap = seconds_between(choice.last_token_at, now) / static_cast<double>(tokens);
      for (int64_t i = 0; i < tokens; ++i) figures_.observe(RequestHistogram::kInterTokenLatency, gap);
    }
    choice.tokens += tokens;
    choice.last_token_at = now;
  }

  /// Its figures, once.
  void finish(WatchedRequest& request, Clock::time_point now) {
    if (std::exchange(request.ended, true)) return;
    const Usage& usage = request.usage;
    figures_.observe(RequestHistogram::kEndToEnd, seconds_between(arrived_, now));
    figures_.observe(RequestHistogram::kQueue, usage.queued_seconds);
    figures_.observe(RequestHistogram::kPromptTokens, usage.prompt_tokens);
    figures_.observe(RequestHistogram::kGenerationTokens, usage.completion_tokens);
    int64_t longest = 0;
    for (const WatchedChoice& choice : request.choices) longest = std::max(longest, choice.tokens);
    figures_.observe(RequestHistogram::kMaxGenerationTokens, static_cast<double>(longest));
    figures_.saw_sequence(usage.prompt_tokens + longest);
    if (usage.first_token_seconds <= 0) return;
    const double decode = usage.total_seconds - usage.first_token_seconds;
    figures_.observe(RequestHistogram::kPrefill, usage.first_token_seconds - usage.queued_seconds);
    figures_.observe(RequestHistogram::kDecode, decode);
    figures_.observe(RequestHistogram::kInference, usage.total_seconds - usage.queued_seconds);
    const double tokens_each = static_cast<double>(usage.completion_tokens) / std::max(shape_.choices, 1);
    if (tokens_each > 1) figures_.observe(RequestHistogram::kTimePerOutputToken, decode / (tokens_each - 1));
  }

  [[nodiscard]] Usage sum() const {
    std::vector<Usage> usages;
    for (const WatchedRequest& request : requests_) usages.push_back(request.usage);
    return openai::sum_of(usages);
  }

  /// From the arrival of the body; 0: there is none.
  [[nodiscard]] double first_token_seconds() const {
    double first = 0;
    for (const WatchedRequest& request : requests_) {
      if (!request.has_token()) continue;
      const double seconds = seconds_between(arrived_, request.first_token_at);
      first = first > 0 ? std::min(first, seconds) : seconds;
    }
    return first;
  }

  void write_line(Outcome outcome, int status, Clock::time_point now) {
    const Usage usage = sum();
    log_.generation({.request_id = request_id_,
                     .caller = caller_,
                     .endpoint = shape_.endpoint,
                     .status = status,
                     .outcome = outcome_name(outcome),
                     .stream = shape_.stream,
                     .prompt_tokens = usage.prompt_tokens,
                     .cached_tokens = usage.cached_tokens,
                     .completion_tokens = usage.completion_tokens,
                     .queue_seconds = usage.queued_seconds,
                     .first_token_seconds = first_token_seconds(),
                     .total_seconds = seconds_between(arrived_, now)});
  }

  [[nodiscard]] RequestSpan span(Outcome outcome, int status, Clock::time_point now) {
    const auto wall_now = std::chrono::system_clock::now();
    const auto wall = [&](Clock::time_point time) {
      return wall_now - std::chrono::duration_cast<std::chrono::system_clock::duration>(now - time);
    };
    const Usage usage = sum();
    RequestSpan span{.context = context_,
                     .begin = wall(arrived_),
                     .end = wall_now,
                     .request_id = request_id_,
                     .endpoint = shape_.endpoint,
                     .model = shape_.model,
                     .outcome = std::string(outcome_name(outcome)),
                     .status = status,
                     .failed = outcome == Outcome::kError || outcome == Outcome::kTimeout || status >= 500,
                     .choices = shape_.choices,
                     .max_tokens = shape_.max_tokens,
                     .prompt_tokens = usage.prompt_tokens,
                     .cached_tokens = usage.cached_tokens,
                     .completion_tokens = usage.completion_tokens,
                     .first_token_seconds = first_token_seconds()};
    for (size_t i = 0; i < std::min(requests_.size(), kMaxTracedRequests); ++i) add_parts(requests_[i], wall, span);
    return span;
  }

  template <class Wall>
  void add_parts(const WatchedRequest& request, const Wall& wall, RequestSpan& span) const {
    if (!request.has_event()) return;
    const auto ticks = [](double seconds) {
      return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
    };
    const Usage& usage = request.usage;
    // The engine tells times since the submission, which was this long before its last word.
    const Clock::time_point submitted = std::max(request.usage_at - ticks(usage.total_seconds), arrived_);
    const Clock::time_point begun = submitted + ticks(usage.queued_seconds);
    span.parts.push_back({"queue", wall(submitted), wall(begun)});
    const Clock::time_point last = std::max(submitted + ticks(usage.total_seconds), begun);
    if (usage.first_token_seconds <= 0) return;
    const Clock::time_point first = std::clamp(submitted + ticks(usage.first_token_seconds), begun, last);
    span.parts.push_back({"prefill", wall(begun), wall(first)});
    span.parts.push_back({"decode", wall(first), wall(last)});
  }

  RequestFigures& figures_;
  RequestLog& log_;
  TraceExporter* const traces_;
  const RequestShape shape_;
  const std::string request_id_;
  const std::string caller_;
  const Clock::time_point arrived_;
  TraceContext context_ = {};
  std::vector<WatchedRequest> requests_;
  bool ended_ = false;
};

RequestWatch::RequestWatch(Metrics& metrics, RequestLog& log, TraceExporter* traces, const Exchange& exchange,
                           RequestShape shape)
    : impl_(std::make_unique<Impl>(metrics, log, traces, exchange, std::move(shape))) {}
RequestWatch::~RequestWatch() = default;
void RequestWatch::event(size_t request, const GenerationEvent& event) { impl_->event(request, event); }
void RequestWatch::end(Outcome outcome, int status) { impl_->end(outcome, status); }

}  // namespace headrace::server
