#include "engine/active_request.h"

#include <algorithm>
#include <numeric>

namespace headrace {
namespace {

double seconds_since(ActiveRequest::Time start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

ActiveRequest::ActiveRequest(RequestId id, GenerationInput input, EventSink sink)
    : id_(id), input_(std::move(input)), sink_(std::move(sink)), submitted_(std::chrono::steady_clock::now()) {
  usage_.prompt_tokens = prompt_tokens();
}

int32_t ActiveRequest::num_choices() const noexcept { return std::max(input_.sampling.n, input_.sampling.best_of); }

bool ActiveRequest::picks_best() const noexcept { return num_choices() > input_.sampling.n; }

Continuation& ActiveRequest::add_part(SequenceId sequence, Continuation continuation) {
  parts_.push_back({sequence, std::make_unique<Continuation>(std::move(continuation))});
  return *parts_.back().continuation;
}

bool ActiveRequest::finished() const noexcept {
  return std::ranges::all_of(parts_, [](const Part& part) { return part.finished; });
}

void ActiveRequest::begin(int32_t cached_tokens) {
  begun_ = true;
  usage_.cached_tokens = cached_tokens;
  usage_.queued_seconds = seconds_since(submitted_);
}

void ActiveRequest::count_token() {
  if (++usage_.completion_tokens == 1) usage_.first_token_seconds = seconds_since(submitted_);
}

bool ActiveRequest::wants_prompt_logprobs() const noexcept { return input_.sampling.prompt_logprobs.has_value(); }

void ActiveRequest::add_prompt_logprobs(TokenLogprobs logprobs) { prompt_logprobs_.push_back(std::move(logprobs)); }

void ActiveRequest::emit(GenerationEvent event) {
  if (!picks_best()) return send(std::move(event));
  add_event(std::move(event), kept_);
  if (finished()) emit_best();
}

void ActiveRequest::emit_best() {
  // By the mean over the tokens, so that short answers have no advantage.
  const auto score = [this](size_t i) {
    const Continuation& continuation = *parts_[i].continuation;
    return continuation.cumulative_logprob() / std::max(continuation.num_tokens(), 1);
  };
  std::vector<size_t> order(parts_.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, [&](size_t a, size_t b) { return score(a) > score(b); });
  // Fewer where the request ended before its choices forked.
  const size_t n = std::min(static_cast<size_t>(input_.sampling.n), order.size());
  for (size_t place = 0; place < n; ++place) {
    Choice& choice = kept_.choices[order[place]];
    send({.choice = static_cast<int32_t>(place),
          .text = std::move(choice.text),
          .tokens = std::move(choice.tokens),
          .logprobs = std::move(choice.logprobs),
          .finish_reason = choice.reason,
          .stop_cause = std::move(choice.stop_cause),
          .last = place + 1 == n});
  }
}

void ActiveRequest::send(GenerationEvent event) {
  if (!prompt_logprobs_.empty()) event.prompt_logprobs = std::exchange(prompt_logprobs_, {});
  usage_.total_seconds = seconds_since(submitted_);
  event.usage = usage_;
  if (!picks_best()) event.last = finished();
  sink_(std::move(event));
}

void ActiveRequest::fail(const Error& error) {
  for (Part& part : parts_) part.finished = true;
  usage_.total_seconds = seconds_since(submitted_);
  sink_({.error = error, .last = true, .usage = usage_});
}

}  // namespace headrace
