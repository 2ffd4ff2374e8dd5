#include "client/serve_measurement.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>

#include "base/cat.h"
#include "base/error.h"
#include "client/draws.h"
#include "client/stream_request.h"

namespace headrace::client {
namespace {

uint64_t unpredictable() {
  std::random_device device;
  return uint64_t{device()} << 32 | device();
}

std::string salt_words(uint64_t seed) {
  constexpr int64_t kSaltWords = 8;  // 128^8 texts
  std::string text;
  for (int64_t i = 0; i < kSaltWords; ++i) text = with_salt(text, random_word(seed, 0, i));
  return text;
}

class ServeBench {
 public:
  explicit ServeBench(ServeBenchSpec spec) : spec_(std::move(spec)), client_(spec_.http) {}

  ServeBenchResult run() {
    if (spec_.target.model.empty()) spec_.target.model = first_model(client_, spec_.target);
    result_.model = spec_.target.model;
    check_server();
    make_data();
    warm_up();
    if (spec_.search_rate) {
      search();
    } else {
      for (const double rate : spec_.rates) {
        for (const int64_t concurrency : spec_.concurrencies) {
          if (!result_.interrupted) run_once(rate, concurrency);
        }
      }
    }
    return std::move(result_);
  }

 private:
  RequestRecord ask_once(std::string_view salt) {
    RequestRecord record;
    StreamRequest request(record, std::chrono::steady_clock::now());
    client_.start(http_request(spec_.target, request_body(spec_.target, "Hello", 1, salt)), request);
    while (!request.ended()) {
      (void)client_.turn(std::chrono::steady_clock::now() + std::chrono::milliseconds(100));
      if (spec_.stop && spec_.stop()) client_.cancel(request);
    }
    return record;
  }

  /// One short request: a server that refuses it would refuse them all. It tells, too, whether `cache_salt` is refused.
  void check_server() {
    constexpr int64_t kBadRequest = 400, kUnprocessable = 422;
    RequestRecord answer = ask_once(spec_.cold_cache ? fmt::format("{:016x}", unpredictable()) : "");
    result_.cache = spec_.cold_cache ? CacheState::kColdSalt : CacheState::kWarm;
    if (spec_.cold_cache && (answer.http_status == kBadRequest || answer.http_status == kUnprocessable)) {
      result_.cache = CacheState::kColdText;
      answer = ask_once("");
    }
    if (answer.status == RequestStatus::kCancelled) throw Error(ErrorCode::kUnavailable, "interrupted");
    if (answer.status != RequestStatus::kCompleted) {
      throw Error(ErrorCode::kUnavailable,
                  cat(http_request(spec_.target, "").url, ": the first request was not answered: ", answer.error));
    }
  }

  void make_data() {
    ServerTokens tokenizer(client_, spec_.target);
    result_.token_source = tokenizer.source();
    if (result_.cache == CacheState::kColdText) spec_.data.salt_words = salt_words(unpredictable());
    spec_.data.seed = spec_.seed;
    spec_.data.stop = spec_.stop;
    spec_.data.progress = [this](size_t done, size_t total) { show("Making prompts", done, total); };
    prompts_ = make_prompts(spec_.data, tokenizer);
  }

  /// What makes the next run cold: a salt for each request, or other words before the prompts.
  std::string next_salt() {
    if (result_.cache == CacheState::kColdSalt) return fmt::format("{:016x}", unpredictable());
    if (result_.cache == CacheState::kColdText) {
      const std::string words = salt_words(unpredictable());
      for (BenchPrompt& prompt : prompts_) prompt.text.replace(0, spec_.data.salt_words.size(), words);
      spec_.data.salt_words = words;
    }
    return {};
  }

  LoadRun run_prompts(std::string_view what, std::span<const BenchPrompt> prompts, std::span<const double> arrivals,
                      int64_t concurrency) {
    return run_load(client_, spec_.target, prompts,
                    {.arrivals = arrivals,
                     .max_concurrency = concurrency,
                     .cache_salt = next_salt(),
                     .stop = spec_.stop,
                     .progress = [&](size_t done) { show(what, done, prompts.size()); }});
  }

  void warm_up() {
    const int64_t clients = std::max<int64_t>(1, std::ranges::max(spec_.concurrencies));
    const auto count =
        std::min<size_t>(prompts_.size(), static_cast<size_t>(spec_.warmups < 0 ? clients : spec_.warmups));
    if (count == 0) return;
    const std::vector<double> at_once(count, 0.0);
    (void)run_prompts("Warming up", std::span(prompts_).first(count), at_once, clients);
  }

  const ServeFigures& run_once(double rate, int64_t concurrency) {
    std::vector<double> arrivals;
    if (spec_.data.name == "trace") {
      for (const BenchPrompt& prompt : prompts_) arrivals.push_back(prompt.arrival / spec_.trace_speed);
    } else {
      arrivals =
          make_arrivals({.rate = rate, .burstiness = spec_.burstiness, .seed = spec_.seed}, std::ssize(prompts_));
    }
    ServeRun run{.rate = rate, .max_concurrency = concurrency, .load = {}, .figures = {}};
    run.load = run_prompts("Measuring", prompts_, arrivals, concurrency);
    run.figures = serve_figures(run.load, spec_.goodput);
    result_.interrupted = run.load.stopped;
    result_.runs.push_back(std::move(run));
    return result_.runs.back().figures;
  }

  void search() {
    RateSearch search(spec_.search);
    while (const std::optional<double> rate = search.next()) {
      const ServeFigures& f = run_once(*rate, spec_.concurrencies.front());
      if (result_.interrupted) break;
      const bool all_answered = f.failed + f.incomplete == 0 && f.completed > 0;
      search.add(all_answered && (!spec_.max_mean_ttft || f.ttft.mean <= *spec_.max_mean_ttft) &&
                 (!spec_.max_mean_latency || f.e2el.mean <= *spec_.max_mean_latency));
    }
    result_.best_rate = search.best();
  }

  void show(std::string_view what, size_t done, size_t total) const {
    if (spec_.progress) spec_.progress(what, done, total);
  }

  ServeBenchSpec spec_;
  HttpClient client_;
  ServeBenchResult result_;
  std::vector<BenchPrompt> prompts_;
};

}  // namespace

ServeBenchResult run_serve_bench(ServeBenchSpec spec) { return ServeBench(std::move(spec)).run(); }

}  // namespace headrace::client
