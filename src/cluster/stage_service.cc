#include "cluster/stage_service.h"

#include <utility>

#include "cluster/result_codec.h"
#include "cluster/time_limits.h"
#include "step/plan_codec.h"

namespace headrace::cluster {
namespace {

/// Each number of a row that was not sent.
constexpr float kMadeUp = 0.5f;

OutFrame report_frame(const StepPlan& plan) {
  return {.header = {.kind = FrameKind::kResult, .epoch = plan.epoch, .id = raw(plan.step_id)},
          .bytes = {},
          .shared = {},
          .data = {}};
}

}  // namespace

StageService::StageService(Config config, std::unique_ptr<Stage> stage, StageLinks links,
                           std::function<void(const Error&)> ended)
    : config_(config), stage_(std::move(stage)), links_(std::move(links)), ended_(std::move(ended)) {
  const auto failed = [this](const Error& error) { end(error); };
  to_head_ = std::make_unique<FrameSender>(*links_.head, failed);
  if (links_.downstream) to_next_ = std::make_unique<FrameSender>(*links_.downstream, failed);
  threads_.emplace_back([this] { receive(*links_.head, FrameKind::kPlan, plans_); });
  threads_.emplace_back([this] { receive(*links_.upstream, FrameKind::kActivations, activations_); });
  threads_.emplace_back([this] { compute(); });
}

StageService::~StageService() { (void)stop(); }

std::unique_ptr<Stage> StageService::stop() {
  has_ended_ = true;
  plans_.close();
  activations_.close();
  links_.head->close();
  links_.upstream->close();
  if (links_.downstream) links_.downstream->close();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
  return std::move(stage_);
}

void StageService::end(const Error& error) {
  if (has_ended_.exchange(true)) return;
  plans_.close();
  activations_.close();
  ended_(error);
}

void StageService::receive(Link& link, FrameKind kind, Channel<Incoming>& channel) {
  while (true) {
    Incoming incoming;
    const auto header = link.receive(incoming.payload, kNoDeadline);
    if (!header) return end(header.error());
    if (header.value().kind != kind) return end(Error(ErrorCode::kCorrupt, cat(link.peer(), ": an unexpected frame")));
    incoming.header = header.value();
    incoming.at = clock_.seconds();
    channel.push(std::move(incoming));
  }
}

void StageService::compute() {
  while (const std::optional<Incoming> next = plans_.pop()) {
    const auto plan = decode_plan(next->payload);
    if (!plan) return end(plan.error());
    const StopWatch waiting;
    const std::optional<Incoming> activations = activations_for(plan.value());
    if (!activations) continue;
    run_step(plan.value(), *activations,
             {.seconds = {.wait = waiting.seconds()}, .moments = {.plan = next->at, .rows = activations->at}});
  }
}

std::optional<StageService::Incoming> StageService::activations_for(const StepPlan& plan) {
  while (true) {
    std::optional<Incoming> next = early_ ? std::exchange(early_, std::nullopt) : activations_.pop();
    if (!next || (next->header.epoch == plan.epoch && next->header.id == raw(plan.step_id))) return next;
    if (next->header.epoch < plan.epoch) continue;
    if (next->header.epoch == plan.epoch && next->header.id < raw(plan.step_id)) continue;
    // The plan is of an epoch that is over, or its step failed before it came here.
    early_ = std::move(next);
    return std::nullopt;
  }
}

void StageService::run_step(const StepPlan& plan, const Incoming& activations, StageReport report) {
  const StopWatch parsing;
  const bool output_alone = stage_->weights().units().num_sublayers() == 0;
  const auto expected = output_alone ? num_outputs(plan) : std::ssize(plan.tokens);
  const bool rehearses = activations.payload.empty();
  if (rehearses) rows_.assign(static_cast<size_t>(expected * config_.hidden), kMadeUp);
  const Result<std::span<const float>> rows =
      rehearses ? std::span<const float>(rows_)
                : decode_activations(activations.payload, expected, config_.hidden, rows_);
  report.seconds.serialise = parsing.seconds();
  if (!rows) return report_failure(plan, rows.error());
  report.moments.begin = clock_.seconds();
  const StopWatch watch;
  if (const auto ran = stage_->run(plan, rows.value(), output_); !ran) return report_failure(plan, ran.error());
  report.seconds += watch.times();
  pass_on(plan, report, rehearses);
}

void StageService::pass_on(const StepPlan& plan, StageReport done, bool rehearses) {
  FrameSender& next = to_next_ ? *to_next_ : *to_head_;
  const double sending = next.seconds_sending();
  done.seconds.wire = sending - std::exchange(sending_before_, sending);
  if (stage_->weights().units().output) {
    done.moments.sent = clock_.seconds();
    return report(plan, done, output_.result);
  }
  const StopWatch serialising;
  std::vector<float> rows = std::exchange(output_.activations, {});
  OutFrame frame = rehearses && to_next_
                       ? frame_without_rows(plan.epoch, plan.step_id)
                       : frame_of_rows(plan.epoch, plan.step_id, std::move(rows), config_.hidden, config_.wire);
  done.seconds.serialise += serialising.seconds();
  done.moments.sent = clock_.seconds();
  next.push(std::move(frame));
  StepResult nothing;
  nothing.epoch = plan.epoch;
  nothing.step_id = plan.step_id;
  report(plan, done, nothing);
}

void StageService::report(const StepPlan& plan, const StageReport& done, StepResult& result) {
  OutFrame frame = report_frame(plan);
  encode_result(result, std::span(&done, 1), frame.bytes);
  frame.data = std::exchange(result.data, {});
  to_head_->push(std::move(frame));
}

void StageService::report_failure(const StepPlan& plan, const Error& error) {
  OutFrame frame = report_frame(plan);
  encode_failure(error, {}, frame.bytes);
  to_head_->push(std::move(frame));
}

}  // namespace headrace::cluster
