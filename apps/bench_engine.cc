// headrace bench engine: how fast many sequences are answered together, what grammars cost, and what a long prompt does
// to those that run beside it.
#include "apps/bench_engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <mutex>

#include "apps/bench_run.h"
#include "apps/commands.h"
#include "apps/load_flags.h"
#include "base/compute_pool.h"
#include "base/error.h"
#include "base/isa.h"
#include "base/options_command_line.h"
#include "engine/load_figures.h"
#include "sample/philox.h"

namespace headrace {
namespace {

using Time = std::chrono::steady_clock::time_point;

struct EngineBenchSettings {
  std::string model;
  LoadOptions load;
  int32_t sequences = 32, prompt = 16, generate = 128, beside = 8000, repetitions = 3;
};

double seconds_between(Time from, Time to) { return std::chrono::duration<double>(to - from).count(); }

/// Requests that run together, with the times of their tokens.
class Load {
 public:
  explicit Load(Model& model) : model_(model) {}
  ~Load() { wait_for(times_.size()); }

  void submit(Request request) {
    size_t index = 0;
    {
      const std::lock_guard lock(mutex_);
      index = times_.size();
      times_.emplace_back();
    }
    model_.submit(std::move(request), [this, index](GenerationEvent&& event) {
      const std::lock_guard lock(mutex_);
      if (!event.error) times_[index].push_back(std::chrono::steady_clock::now());
      if (event.last) ++ended_;
      changed_.notify_all();
    });
  }
  /// Waits until so many requests have ended.
  void wait_for(size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return ended_ >= count; });
  }
  /// Waits until each request has a token.
  void wait_for_first_tokens() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return std::ranges::none_of(times_, [](const auto& t) { return t.empty(); }); });
  }
  [[nodiscard]] std::vector<std::vector<Time>> times() {
    const std::lock_guard lock(mutex_);
    return times_;
  }

 private:
  Model& model_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::vector<Time>> times_;
  size_t ended_ = 0;
};

Request request_of(int32_t prompt, int32_t generate, int64_t number) {
  std::vector<int32_t> tokens;
  // Low ids: every vocabulary has as many.
  for (int32_t i = 0; i < prompt; ++i)
    tokens.push_back(static_cast<int32_t>(uniform_at(7, 0, number * 65536 + i) * 400) + 20);
  SamplingParams params{.temperature = 0, .max_tokens = generate};
  params.ignore_eos = true;
  return {.input = std::move(tokens), .sampling = params};
}

struct Rates {
  double decode = 0;  ///< tokens per second from when all have their first token
  double busy = 0;    ///< share of the time in which steps are computed
};

Rates measure_together(Model& model, const EngineBenchSettings& s, bool structured) {
  Load load(model);
  for (int32_t i = 0; i < s.sequences; ++i) {
    Request request = request_of(s.prompt, s.generate, i);
    if (structured) {
      request.sampling.structured_output =
          JsonSchemaOutput{R"({"type":"array","items":{"type":"string"},"minItems":1000})"};
    }
    load.submit(std::move(request));
  }
  load.wait_for_first_tokens();
  const double computed_before = model.figures().step_seconds;
  const Time begin = std::chrono::steady_clock::now();
  load.wait_for(static_cast<size_t>(s.sequences));
  const Time end = std::chrono::steady_clock::now();
  double tokens = 0;
  for (const std::vector<Time>& times : load.times()) {
    tokens += static_cast<double>(std::ranges::count_if(times, [&](Time t) { return t > begin; }));
  }
  const double elapsed = seconds_between(begin, end);
  return {.decode = tokens / elapsed, .busy = (model.figures().step_seconds - computed_before) / elapsed};
}

/// Times of the tokens of 16 sequences, while a prompt of `beside` tokens is read (0: none); `read` gets its time.
std::vector<std::vector<Time>> run_streams(Model& model, const EngineBenchSettings& s, int32_t beside, double& read) {
  constexpr int32_t kStreams = 16, kTokens = 512;
  Load streams(model);
  // The same depths with and without the prompt: longer sequences take longer steps.
  for (int32_t i = 0; i < kStreams; ++i) streams.submit(request_of(s.prompt, kTokens, 1000 + i));
  streams.wait_for_first_tokens();
  if (beside > 0) {
    const Time arrives = std::chrono::steady_clock::now();
    Load prompt(model);
    prompt.submit(request_of(beside, 1, 2000));
    prompt.wait_for(1);
    read = seconds_between(arrives, std::chrono::steady_clock::now());
  }
  streams.wait_for(kStreams);
  return streams.times();
}

void measure_beside(Model& model, const EngineBenchSettings& s) {
  double read = 0;
  const auto gaps_of = [](const std::vector<std::vector<Time>>& times) {
    std::vector<double> gaps;
    for (const std::vector<Time>& stream : times) {
      for (size_t i = 1; i < stream.size(); ++i) gaps.push_back(seconds_between(stream[i - 1], stream[i]));
    }
    return spread_of(std::move(gaps));
  };
  const Spread alone = gaps_of(run_streams(model, s, 0, read));
  const Spread beside = gaps_of(run_streams(model, s, s.beside, read));
  fmt::print("\n| 16 streams | P50 | P99 | most |\n|---|---:|---:|---:|\n");
  const auto row = [](const std::string& what, const Spread& gaps) {
    fmt::print("| {} | {:.1f} ms | {:.1f} ms | {:.1f} ms |\n", what, gaps.median * 1e3, gaps.p99 * 1e3, gaps.max * 1e3);
  };
  row("alone", alone);
  row(fmt::format("beside a prompt of {} tokens, read in {:.2f} s", s.beside, read), beside);
  fmt::print("\nP99 beside the prompt: {:.2f} x the median alone, {:+.1f} ms\n", beside.p99 / alone.median,
             (beside.p99 - alone.median) * 1e3);
}

}  // namespace

int command_bench_engine(std::span<const std::string> arguments) {
  EngineBenchSettings s;
  const OptionRange positive{.min = 1, .max = 1 << 20};
  const CommandLine command(
      "headrace bench engine",
      "Measures answers to many requests at once: tokens a second with and without a grammar, the share of the time in "
      "which the model computes, and the gaps between tokens of 16 sequences while a long prompt is read beside them.",
      {{.name = "MODEL", .target = &s.model, .help = kModelHelp}},
      {{"What",
        {{.name = "sequences", .letter = 's', .target = &s.sequences, .range = positive, .help = "requests at once"},
         {.name = "prompt", .letter = 'p', .target = &s.prompt, .range = positive, .help = "tokens of each prompt"},
         {.name = "generate", .letter = 'n', .target = &s.generate, .range = positive, .help = "tokens of each answer"},
         {.name = "beside",
          .target = &s.beside,
          .range = {.min = 0, .max = 1 << 20},
          .help = "tokens of the long prompt; 0: leave it out"},
         {.name = "repetitions",
          .letter = 'r',
          .target = &s.repetitions,
          .range = positive,
          .help = "runs; the median counts"}}},
       {"Loading", load_flags(s.load)},
       {"Serving", serving_flags(s.load)}});
  if (command.parse(arguments) == CommandLine::Outcome::kHelp) {
    std::fputs(command.help().c_str(), stdout);
    return 0;
  }
  auto progress = show_loading(s.model, s.load);
  Model model = Model::load(s.model, s.load);
  progress.reset();
  fmt::print("{}; {}, {} usable CPUs\n\n", version_text(), cpu_model_name(), usable_cpus());
  fmt::print("{}: KV cache of {} tokens; prompts of {} tokens, answers of {}; median of {} runs\n\n", s.model,
             model.kv_cache_tokens(), s.prompt, s.generate, s.repetitions);
  fmt::print("| sequences | answers | tok/s | computing |\n|---:|---|---:|---:|\n");
  (void)measure_together(model, s, false);  // warms up
  std::vector<Rates> free, structured;
  for (int32_t i = 0; i < s.repetitions; ++i) {
    free.push_back(measure_together(model, s, false));
    structured.push_back(measure_together(model, s, true));
  }
  const auto row = [&](const char* what, const std::vector<Rates>& runs) {
    std::vector<double> decode, busy;
    for (const Rates& run : runs) decode.push_back(run.decode), busy.push_back(run.busy);
    fmt::print("| {} | {} | {:.1f} | {:.1f} % |\n", s.sequences, what, median(decode), 100 * median(busy));
    return median(decode);
  };
  const double free_rate = row("free", free);
  const double bound_rate = row("bound to a JSON schema", structured);
  fmt::print("\nthe schema costs {:.1f} %\n", 100 * (1 - bound_rate / free_rate));
  if (s.beside > 0) measure_beside(model, s);
  return 0;
}

}  // namespace headrace
