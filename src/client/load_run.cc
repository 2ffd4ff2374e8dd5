#include "client/load_run.h"

#include <algorithm>
#include <ctime>
#include <memory>

#include "client/stream_request.h"

namespace headrace::client {
namespace {

using Clock = std::chrono::steady_clock;

double process_cpu_seconds() {
  timespec used{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return static_cast<double>(used.tv_sec) + 1e-9 * static_cast<double>(used.tv_nsec);
}

class LoadDriver {
 public:
  LoadDriver(HttpClient& client, const OpenAiTarget& target, std::span<const BenchPrompt> prompts,
             const LoadRunOptions& options)
      : client_(client),
        options_(options),
        limit_(options.max_concurrency > 0 ? options.max_concurrency : std::ssize(prompts)) {
    for (const BenchPrompt& prompt : prompts) {
      http_.push_back(http_request(target, request_body(target, prompt.text, prompt.max_tokens, options.cache_salt)));
      RequestRecord record;
      record.index = static_cast<int32_t>(records_.size());
      record.arrival = options.arrivals[records_.size()];
      record.prompt_tokens = prompt.prompt_tokens;
      record.max_tokens = prompt.max_tokens;
      records_.push_back(std::move(record));
    }
    streams_.resize(records_.size());
  }

  LoadRun run() {
    const double cpu_before = process_cpu_seconds();
    origin_ = Clock::now();
    bool stopped = false;
    double longest_turn = 0;
    while (next_ < records_.size() || !running_.empty()) {
      const Time turn_begin = Clock::now();
      stopped = options_.stop && options_.stop();
      if (stopped) break;
      send_due();
      const bool can_send = next_ < records_.size() && std::ssize(running_) < limit_;
      // A limit for the wait keeps the run answering to `stop`.
      constexpr auto kLongestWait = std::chrono::milliseconds(100);
      Time deadline = Clock::now() + kLongestWait;
      if (can_send) deadline = std::min(deadline, time_of(records_[next_].arrival));
      longest_turn = std::max(longest_turn, seconds_between(turn_begin, Clock::now()));
      longest_turn = std::max(longest_turn, client_.turn(deadline));
      collect();
    }
    LoadRun result;
    if (stopped) cancel();
    result.stopped = stopped;
    result.duration = now();
    result.cpu_seconds = process_cpu_seconds() - cpu_before;
    result.longest_turn_seconds = longest_turn;
    result.max_concurrency = options_.max_concurrency;
    result.not_sent = static_cast<int64_t>(records_.size() - next_);
    records_.resize(next_);
    result.records = std::move(records_);
    return result;
  }

 private:
  static double seconds_between(Time from, Time to) { return std::chrono::duration<double>(to - from).count(); }
  [[nodiscard]] double now() const { return seconds_between(origin_, Clock::now()); }
  [[nodiscard]] Time time_of(double seconds) const {
    return origin_ + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  }

  void send_due() {
    while (next_ < records_.size() && std::ssize(running_) < limit_) {
      RequestRecord& record = records_[next_];
      const double at = now();
      if (record.arrival > at) return;
      record.due = std::max(record.arrival, next_ < static_cast<size_t>(limit_) ? 0.0 : freed_at_);
      record.sent = at;
      streams_[next_] = std::make_unique<StreamRequest>(record, origin_);
      running_.push_back(next_);
      client_.start(http_[next_], *streams_[next_]);
      http_[next_] = {};
      ++next_;
    }
  }

  void collect() {
    if (client_.num_running() == running_.size()) return;
    std::erase_if(running_, [&](size_t index) {
      if (!streams_[index]->ended()) return false;
      freed_at_ = records_[index].end;
      streams_[index].reset();
      ++ended_;
      return true;
    });
    if (options_.progress) options_.progress(ended_);
  }

  void cancel() {
    for (const size_t index : running_) client_.cancel(*streams_[index]);
    running_.clear();
  }

  HttpClient& client_;
  const LoadRunOptions& options_;
  int64_t limit_;
  std::vector<HttpRequest> http_;
  std::vector<RequestRecord> records_;  // not resized while requests run: streams write into it
  std::vector<std::unique_ptr<StreamRequest>> streams_;
  std::vector<size_t> running_;
  size_t next_ = 0, ended_ = 0;
  double freed_at_ = 0;
  Time origin_;
};

}  // namespace

LoadRun run_load(HttpClient& client, const OpenAiTarget& target, std::span<const BenchPrompt> prompts,
                 const LoadRunOptions& options) {
  return LoadDriver(client, target, prompts, options).run();
}

}  // namespace headrace::client
