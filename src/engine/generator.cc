#include "engine/generator.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/log.h"

namespace headrace {
namespace {

/// How long the thread sleeps at most while a deadline may pass.
constexpr auto kDeadlineCheck = std::chrono::milliseconds(20);

SequenceSpec spec_of(const GenerationInput& input, int32_t max_tokens, double now) {
  const int32_t max_len = static_cast<int32_t>(input.prompt.size()) + max_tokens;
  SequenceSpec spec{.tokens = input.prompt, .max_len = max_len};
  if (input.sampling.prompt_logprobs) spec.output_from = 0;
  if (input.sampling.max_tokens > 0) spec.expected_len = max_len;
  spec.priority = input.priority;
  spec.tenant = input.tenant;
  spec.salt = input.salt;
  if (input.queue_timeout_seconds > 0) spec.queue_deadline = now + input.queue_timeout_seconds;
  if (input.timeout_seconds > 0) spec.deadline = now + input.timeout_seconds;
  return spec;
}

}  // namespace

Generator::Generator(Engine& engine, const Tokenizer& tokenizer, std::vector<TokenId> end_tokens, int32_t vocab_size,
                     QueueLimits limits)
    : engine_(engine),
      tokenizer_(tokenizer),
      end_tokens_(std::move(end_tokens)),
      vocab_size_(vocab_size),
      limits_(limits),
      has_spare_cpu_(engine.pool().threads() < usable_cpus()),
      sampler_(engine.pool(), vocab_size),
      thread_([this] { run(); }) {}

Generator::~Generator() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake();
  thread_.join();
}

RequestId Generator::submit(GenerationInput input, EventSink sink) {
  const auto prompt = static_cast<int64_t>(input.prompt.size());
  const int64_t limit = engine_.max_model_len() - (input.score_only ? 0 : 1);
  if (prompt > limit) throw ContextLengthError(prompt, engine_.max_model_len());
  engine_.check_prompt(input.prompt);
  const std::lock_guard lock(mutex_);
  if (queued_requests_ >= limits_.max_requests ||
      (queued_requests_ > 0 && queued_tokens_ + prompt > limits_.max_tokens)) {
    ++refused_;
    throw Error(ErrorCode::kUnavailable, cat("the queue is full: ", queued_requests_, " requests of ", queued_tokens_,
                                             " prompt tokens wait; try again later"));
  }
  const RequestId id{next_request_++};
  ++queued_requests_;
  queued_tokens_ += prompt;
  arrived_.push_back(std::make_unique<ActiveRequest>(id, std::move(input), std::move(sink)));
  if (!std::exchange(busy_, true)) progress_at_ = engine_.clock().now();
  wake();
  return id;
}

void Generator::cancel(RequestId request) {
  const std::lock_guard lock(mutex_);
  cancelled_.push_back(request);
  wake();
}

void Generator::wake() noexcept {
  wake_.notify_one();
  engine_.executor().wake();
}

GeneratorFigures Generator::figures() const {
  const std::lock_guard lock(mutex_);
  GeneratorFigures figures = published_;
  figures.queued_requests = queued_requests_;
  figures.queued_tokens = queued_tokens_;
  figures.refused = refused_;
  figures.seconds_without_step = busy_ ? engine_.clock().now() - progress_at_ : 0;
  figures.backlog_seconds = backlog_seconds(figures);
  return figures;
}

double Generator::backlog_seconds(const GeneratorFigures& figures) {
  if (figures.queued_requests == 0) return 0;
  const SchedulerFigures& scheduler = figures.scheduler;
  const auto prompts =
      static_cast<double>(std::max(figures.queued_tokens, scheduler.queued_tokens) + scheduler.unread_tokens);
  // What those that run have been given so far counts too, or long first answers would be none at all.
  const int64_t requests = figures.finished + figures.cancelled + figures.failed + figures.running_requests;
  const double mean_answer =
      static_cast<double>(figures.completion_tokens) / static_cast<double>(std::max<int64_t>(requests, 1));
  return prompts * scheduler.prompt_token_seconds +
         static_cast<double>(figures.queued_requests) * mean_answer * scheduler.decode_token_seconds;
}

void Generator::run() noexcept {
  publish_figures(false);
  while (take_mail()) {
    expire();
    if (idle_) give_up_waiting();
    const bool wants_room = submit_steps();
    const bool has_result = steps_out_ > 0 && engine_.executor().wait(wants_room);
    if (has_result) receive_step();
    publish_figures(has_result);
  }
}

bool Generator::take_mail() {
  std::vector<std::unique_ptr<ActiveRequest>> arrived;
  std::vector<RequestId> cancelled;
  bool stop = false;
  {
    std::unique_lock lock(mutex_);
    const auto has_mail = [this] { return stop_ || !arrived_.empty() || !cancelled_.empty(); };
    if (requests_.empty()) {
      wake_.wait(lock, has_mail);
    } else if (idle_) {
      wake_.wait_for(lock, kDeadlineCheck, has_mail);
    }
    arrived.swap(arrived_);
    cancelled.swap(cancelled_);
    stop = stop_;
  }
  for (std::unique_ptr<ActiveRequest>& request : arrived) admit(std::move(request));
  for (const RequestId id : cancelled) {
    if (const auto found = requests_.find(id); found != requests_.end()) cancel_now(*found->second);
  }
  if (stop) {
    while (!requests_.empty()) cancel_now(*requests_.begin()->second);
  }
  return !stop;
}

void Generator::admit(std::unique_ptr<ActiveRequest> request) {
  const GenerationInput& input = request->input();
  const int32_t room = engine_.max_model_len() - request->prompt_tokens();
  const int32_t wanted = input.sampling.max_tokens > 0 ? input.sampling.max_tokens : room;
  const int32_t max_tokens = input.score_only ? 0 : std::min(wanted, room);
  const SequenceId sequence{next_sequence_++};
  request->add_part(sequence, Continuation(SamplingState(input.sampling, input.seed, 0, input.prompt, end_tokens_,
                                                         input.grammar, input.gate),
                                           tokenizer_,
                                           {.end_tokens = end_tokens_,
                                            .continues_text = input.continues_text,
                                            .compares = request->picks_best(),
                                            .max_tokens = max_tokens}));
  ActiveRequest& active = *request;
  requests_.emplace(active.id(), std::move(request));
  const SequenceSpec spec = spec_of(input, max_tokens, engine_.clock().now());
  if (engine_.scheduler().add(sequence, spec) == Admit::kYes) {
    sequences_[sequence] = {&active, active.parts().front().continuation.get()};
    return;
  }
  fail(active, ContextLengthError(active.prompt_tokens() + max_tokens, engine_.kv_tokens()));
}

void Generator::drop(ActiveRequest& request) {
  for (const ActiveRequest::Part& part : request.parts()) {
    if (sequences_.erase(part.sequence) > 0) engine_.scheduler().finish(part.sequence);
  }
  leave_queue(request);
  requests_.erase(request.id());
}

void Generator::leave_queue(ActiveRequest& request) {
  if (!request.leave_queue()) return;
  const std::lock_guard lock(mutex_);
  --queued_requests_;
  queued_tokens_ -= request.prompt_tokens();
}

void Generator::cancel_now(ActiveRequest& request) {
  end_all(request, FinishReason::kCancelled);
  ++counts_.cancelled;
  drop(request);
}

void Generator::expire() {
  for (const SequenceId sequence : engine_.scheduler().take_expired()) {
    const auto found = sequences_.find(sequence);
    if (found == sequences_.end()) continue;
    ActiveRequest& request = *found->second.request;
    fail(request, Error(ErrorCode::kTimeout, request.begun() ? "the request took longer than its time limit"
                                                             : "the request waited longer than its time limit"));
  }
}

bool Generator::submit_steps() {
  Scheduler& scheduler = engine_.scheduler();
  while (steps_out_ < scheduler.steps_in_flight_limit()) {
    if (!engine_.executor().can_take()) {
      idle_ = steps_out_ == 0;  // the machines are being joined again
      return true;
    }
    std::optional<StepPlan> plan = scheduler.compose();
    if (!plan) break;
    prepare_rows(*plan);
    engine_.executor().submit(std::move(*plan));
    ++steps_out_;
  }
  idle_ = steps_out_ == 0;
  return false;
}

void Generator::prepare_rows(const StepPlan& plan) {
  for (const PlanRow& row : plan.rows) {
    const auto found = sequences_.find(row.sequence);
    if (found == sequences_.end()) continue;
    ActiveRequest& request = *found->second.request;
    if (!request.begun()) {
      request.begin(engine_.scheduler().cached_tokens(row.sequence));
      counts_.prompt_tokens += request.prompt_tokens();
      counts_.cached_tokens += request.usage().cached_tokens;
      leave_queue(request);
    }
    SamplingState& state = found->second.continuation->state();
    if (row.num_outputs > 0 && state.has_grammar() && has_spare_cpu_) preparation_.add(state);
  }
}

void Generator::receive_step() {
  const auto received = engine_.executor().receive(result_);
  --steps_out_;
  preparation_.wait();
  if (!received) return recover(received.error());
  for (const double seconds : result_.stage_seconds) counts_.step_seconds += seconds;
  engine_.scheduler().complete(result_);
  take_outputs(result_);
}

void Generator::take_outputs(const StepResult& result) {
  jobs_.clear();
  const auto width = static_cast<size_t>(result.width);
  for (size_t i = 0; i < result.outputs.size(); ++i) {
    const auto [sequence, position] = result.outputs[i];
    const auto found = sequences_.find(sequence);
    if (found == sequences_.end()) continue;  // it ended meanwhile
    const auto [request, continuation] = found->second;
    const auto logits = std::span(result.data).subspan(i * width, static_cast<size_t>(vocab_size_));
    const auto length = static_cast<int32_t>(engine_.scheduler().tokens(sequence).size());
    if (position + 1 < length) {
      score_prompt(*request, position, logits);
    } else if (request->input().score_only) {
      finish_scored(*request);
    } else {
      jobs_.push_back({.sequence = sequence, .continuation = continuation, .logits = logits, .position = length});
      if (continuation->num_tokens() == 0) fork_choices(*request, jobs_.back());
    }
  }
  sampler_.run(jobs_);
  for (const SampleJob& job : jobs_) {
    // A request that failed by an earlier one of its choices is gone.
    if (const auto found = sequences_.find(job.sequence); found != sequences_.end()) {
      take_token(*found->second.request, *found->second.continuation, job);
    }
  }
}

void Generator::score_prompt(ActiveRequest& request, int32_t position, std::span<const float> logits) {
  // A sequence that was preempted computes its prompt again.
  if (!request.wants_prompt_logprobs() || position != request.num_prompt_logprobs()) return;
  const TokenId token = request.input().prompt[static_cast<size_t>(position) + 1];
  TokenLogprobs logprobs;
  sampler_.one().logprobs(logits, token, *request.input().sampling.prompt_logprobs, logprobs);
  request.add_prompt_logprobs(std::move(logprobs));
}

void Generator::finish_scored(ActiveRequest& request) {
  for (int32_t choice = 1; choice < request.num_choices(); ++choice) {
    request.add_part(SequenceId{}, request.parts().front().continuation->fork(static_cast<uint32_t>(choice)));
  }
  end_all(request, FinishReason::kLength);
  ++counts_.finished;
  drop(request);
}

void Generator::end_all(ActiveRequest& request, FinishReason reason) {
  for (ActiveRequest::Part& part : request.parts()) {
    if (std::exchange(part.finished, true)) continue;
    GenerationEvent event{.choice = part.continuation->choice()};
    part.continuation->end(reason, event);
    request.emit(std::move(event));
  }
}

void Generator::fork_choices(ActiveRequest& request, const SampleJob& first) {
  const SampleJob parent = first;  // adding jobs moves them
  for (int32_t choice = 1; choice < request.num_choices(); ++choice) {
    const SequenceId sequence{next_sequence_++};
    SequenceSpec spec = spec_of(request.input(), parent.continuation->max_tokens(), engine_.clock().now());
    spec.tokens.clear();
    engine_.scheduler().fork(parent.sequence, sequence, std::move(spec));
    Continuation& child = request.add_part(sequence, parent.continuation->fork(static_cast<uint32_t>(choice)));
    sequences_[sequence] = {&request, &child};
    jobs_.push_back(
        {.sequence = sequence, .continuation = &child, .logits = parent.logits, .position = parent.position});
  }
}

void Generator::take_token(ActiveRequest& request, Continuation& continuation, const SampleJob& job) {
  if (job.is_broken) {
    return fail(request,
                Error(ErrorCode::kCorrupt, "the logits are not numbers; the model's weights are broken or too large"));
  }
  if (job.sampled.token == kNoToken) {
    const std::string why = continuation.state().failure();
    return fail(request, Error(ErrorCode::kInvalidArgument, why.empty() ? "no token is left that may be chosen" : why));
  }
  GenerationEvent event{.choice = continuation.choice()};
  const bool goes_on = continuation.accept(job.sampled, event);
  if (goes_on) {
    engine_.scheduler().append(job.sequence, job.sampled.token);
  } else {
    request.part(continuation.choice()).finished = true;
    sequences_.erase(job.sequence);
    engine_.scheduler().finish(job.sequence);
  }
  request.count_token();
  ++counts_.completion_tokens;
  request.emit(std::move(event));
  if (request.finished()) {
    ++counts_.finished;
    drop(request);
  }
}

void Generator::recover(const Error& error) {
  ++counts_.failed_steps;
  if (const int64_t losses = engine_.executor().losses(); losses != losses_) {
    losses_ = losses;
    log_warn("{} requests wait: {}", requests_.size(), error.message());
  } else {
    fail_begun(error);
  }
  for (; steps_out_ > 0; --steps_out_) (void)engine_.executor().receive(result_);
  engine_.restart();
}

void Generator::give_up_waiting() {
  const double lost = engine_.executor().seconds_lost();
  if (lost <= limits_.rejoin_seconds) return;
  const auto begun = [](const auto& entry) { return entry.second->begun(); };
  if (std::ranges::none_of(requests_, begun)) return;
  fail_begun(
      Error(ErrorCode::kUnavailable, cat("a machine of the cluster has been gone for ", std::floor(lost), " s")));
}

void Generator::fail(ActiveRequest& request, const Error& error) {
  request.fail(error);
  ++counts_.failed;
  drop(request);
}

void Generator::fail_begun(const Error& error) {
  std::vector<ActiveRequest*> begun;
  for (const auto& [id, request] : requests_) {
    if (request->begun()) begun.push_back(request.get());
  }
  log_warn("{} requests that had begun fail: {}", begun.size(), error.message());
  for (ActiveRequest* request : begun) fail(*request, error);
}

void Generator::publish_figures(bool stepped) {
  counts_.running_requests = static_cast<int64_t>(requests_.size());
  counts_.scheduler = engine_.scheduler().figures();
  counts_.cache = engine_.cache().figures();
  const std::lock_guard lock(mutex_);
  published_ = counts_;
  published_.running_requests -= queued_requests_ - static_cast<int64_t>(arrived_.size());
  busy_ = !requests_.empty() || !arrived_.empty();
  if (stepped) progress_at_ = engine_.clock().now();
}

}  // namespace headrace
