#include "cluster/pipeline_executor.h"

#include <utility>

#include "base/check.h"
#include "base/log.h"
#include "base/steady_seconds.h"
#include "cluster/activation_frames.h"
#include "cluster/named_error.h"
#include "cluster/result_codec.h"
#include "cluster/stop_watch.h"
#include "cluster/time_limits.h"
#include "step/plan_codec.h"

namespace headrace::cluster {
namespace {

/// Whether a worker's result is that of the plan's sampled rows.
Result<std::monostate> check_result(const StepPlan& plan, const StepResult& result) {
  const int64_t outputs = num_outputs(plan);
  const bool has_data = std::ssize(result.data) == outputs * result.width;
  if (result.epoch == plan.epoch && result.step_id == plan.step_id && std::ssize(result.outputs) == outputs &&
      has_data) {
    return std::monostate{};
  }
  return Error(ErrorCode::kCorrupt,
               cat("step ", raw(plan.step_id), ": a result of ", result.outputs.size(), " rows, expected ", outputs));
}

}  // namespace

PipelineExecutor::PipelineExecutor(Config config, HeadStages stages, std::vector<WorkerLink> workers,
                                   std::unique_ptr<Link> activations, std::function<void()> on_loss)
    : config_(std::move(config)),
      stages_(std::move(stages)),
      workers_(std::move(workers)),
      activations_link_(std::move(activations)),
      on_loss_(std::move(on_loss)),
      places_(workers_.size()) {
  HR_CHECK(!workers_.empty(), "a pipeline has workers");
  figures_.begun = std::chrono::steady_clock::now();
  figures_.stages.resize(workers_.size() + 1);
  const auto failed = [this](const std::string& node) {
    return [this, node](const Error& error) { lose(named_error(node, error)); };
  };
  for (const WorkerLink& worker : workers_) {
    plan_senders_.push_back(std::make_unique<FrameSender>(*worker.plans, failed(worker.name)));
  }
  activation_sender_ = std::make_unique<FrameSender>(*activations_link_, failed(workers_.front().name));
  threads_.emplace_back([this] { compute(); });
  for (size_t i = 0; i < workers_.size(); ++i) threads_.emplace_back([this, i] { listen_to(i); });
}

PipelineExecutor::~PipelineExecutor() { (void)stop(); }

HeadStages PipelineExecutor::stop() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  work_.notify_all();
  for (const WorkerLink& worker : workers_) worker.plans->close();
  activations_link_->close();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
  return std::move(stages_);
}

void PipelineExecutor::submit(StepPlan plan) {
  auto step = std::make_shared<Step>();
  step->plan = std::make_shared<const StepPlan>(std::move(plan));
  step->workers.resize(workers_.size());
  const auto encoded = std::make_shared<std::vector<std::byte>>();
  encode_plan(*step->plan, *encoded);
  step->moments.plan_sent = steady_seconds();
  {
    const std::lock_guard lock(mutex_);
    if (step->plan->epoch != epoch_) {
      epoch_ = step->plan->epoch;
      failure_.reset();
      first_.clear();
      returned_.clear();
    }
    out_.push_back(step);
    first_.push_back(step);
  }
  work_.notify_one();
  const FrameHeader header{.kind = FrameKind::kPlan, .epoch = step->plan->epoch, .id = raw(step->plan->step_id)};
  for (const auto& sender : plan_senders_) {
    sender->push({.header = header, .bytes = {}, .shared = encoded, .data = {}});
  }
}

bool PipelineExecutor::can_take() const {
  const std::lock_guard lock(mutex_);
  return !lost_ && first_.empty();
}

bool PipelineExecutor::wait(bool for_room) {
  std::unique_lock lock(mutex_);
  results_.wait(lock, [&] { return woken_ || front_is_ready() || (for_room && first_.empty()); });
  woken_ = false;
  return front_is_ready();
}

void PipelineExecutor::wake() noexcept {
  {
    const std::lock_guard lock(mutex_);
    woken_ = true;
  }
  results_.notify_all();
}

Result<std::monostate> PipelineExecutor::receive(StepResult& result) {
  std::unique_lock lock(mutex_);
  HR_CHECK(!out_.empty(), "no step is outstanding");
  results_.wait(lock, [this] { return front_is_ready(); });
  const StepPtr step = std::move(out_.front());
  out_.pop_front();
  if (lost_) return *lost_;
  if (failure_) return *failure_;
  count(*step);
  std::swap(result, step->result);
  result.stage_seconds.clear();
  result.stage_seconds.push_back(step->own.compute);
  for (const WorkerMoments& worker : step->workers) result.stage_seconds.push_back(worker.report.seconds.compute);
  if (config_.timeline) {
    const StepSlices slices = place(*step);
    lock.unlock();
    config_.timeline->add(slices);
  }
  return std::monostate{};
}

StepSlices PipelineExecutor::place(const Step& step) {
  StepSlices slices = places_.place(step.moments, step.workers);
  slices.step = step.plan->step_id;
  slices.rows = step.plan->rows.size();
  slices.tokens = step.plan->tokens.size();
  return slices;
}

void PipelineExecutor::count(const Step& step) {
  ++figures_.steps;
  figures_.tokens += std::ssize(step.plan->tokens);
  figures_.stages.front().seconds += step.own;
  for (size_t i = 0; i < step.workers.size(); ++i) figures_.stages[i + 1].seconds += step.workers[i].report.seconds;
}

PipelineFigures PipelineExecutor::figures() const {
  PipelineFigures figures;
  {
    const std::lock_guard lock(mutex_);
    figures = figures_;
    figures.in_flight = static_cast<int32_t>(out_.size());
  }
  figures.stages.front().links = activations_link_->figures();
  for (size_t i = 0; i < workers_.size(); ++i) figures.stages[i + 1].links = workers_[i].plans->figures();
  return figures;
}

bool PipelineExecutor::front_is_ready() const { return !out_.empty() && (lost_ || failure_ || is_done(*out_.front())); }

bool PipelineExecutor::is_done(const Step& step) const {
  return step.has_result && step.reports == std::ssize(workers_);
}

PipelineExecutor::StepPtr PipelineExecutor::find(EpochId epoch, uint64_t id) const {
  if (epoch != epoch_) return nullptr;
  for (const StepPtr& step : out_) {
    if (raw(step->plan->step_id) == id) return step;
  }
  return nullptr;
}

void PipelineExecutor::lose(const Error& error) {
  {
    const std::lock_guard lock(mutex_);
    if (stop_ || lost_) return;
    lost_ = error;
    first_.clear();
    returned_.clear();
  }
  log_warn("the pipeline stands still: {}", error.message());
  results_.notify_all();
  if (on_loss_) on_loss_();
}

bool PipelineExecutor::is_lost() const {
  const std::lock_guard lock(mutex_);
  return lost_.has_value();
}

void PipelineExecutor::fail_steps(EpochId epoch, const Error& error) {
  {
    const std::lock_guard lock(mutex_);
    if (epoch != epoch_ || failure_) return;
    failure_ = error;
    first_.clear();
    returned_.clear();
  }
  results_.notify_all();
}

void PipelineExecutor::compute() {
  while (true) {
    StepPtr step;
    bool is_first = false;
    {
      std::unique_lock lock(mutex_);
      work_.wait(lock, [this] { return stop_ || !returned_.empty() || !first_.empty(); });
      if (stop_) return;
      is_first = returned_.empty();
      std::deque<StepPtr>& queue = is_first ? first_ : returned_;
      step = std::move(queue.front());
      queue.pop_front();
    }
    if (is_first) {
      results_.notify_all();  // there is room
      compute_first(step);
    } else {
      compute_output(step);
    }
  }
}

void PipelineExecutor::compute_first(const StepPtr& step) {
  const StepPlan& plan = *step->plan;
  StageSlice slice{.compute = {.begin = steady_seconds()}};
  const StopWatch watch;
  if (const auto ran = stages_.first->run(plan, {}, first_output_); !ran) return fail_steps(plan.epoch, ran.error());
  StageTimes times = watch.times();
  slice.compute.end = slice.compute.begin + times.compute;
  const StopWatch serialising;
  OutFrame frame = rehearses_ ? frame_without_rows(plan.epoch, plan.step_id)
                              : frame_of_rows(plan.epoch, plan.step_id, std::exchange(first_output_.activations, {}),
                                              config_.hidden, config_.wire);
  slice.serialise = times.serialise = serialising.seconds();
  {
    // Before they are sent: once they are, the step may be done.
    const std::lock_guard lock(mutex_);
    step->own += times;
    step->moments.first = slice;
    step->moments.rows_sent = steady_seconds();
  }
  activation_sender_->push(std::move(frame));
}

void PipelineExecutor::compute_output(const StepPtr& step) {
  const StepPlan& plan = *step->plan;
  const StopWatch parsing;
  const auto rows = decode_activations(step->payload, num_outputs(plan), config_.hidden, rows_);
  if (!rows) return fail_steps(plan.epoch, rows.error());
  StageSlice slice{.serialise = parsing.seconds()};
  slice.compute.begin = steady_seconds();
  const StopWatch watch;
  if (const auto ran = stages_.output->run(plan, rows.value(), last_output_); !ran) {
    return fail_steps(plan.epoch, ran.error());
  }
  StageTimes times = watch.times();
  times.serialise = slice.serialise;
  slice.compute.end = slice.compute.begin + times.compute;
  {
    const std::lock_guard lock(mutex_);
    step->own += times;
    step->moments.output = slice;
    std::swap(step->result, last_output_.result);
    step->has_result = true;
  }
  results_.notify_all();
}

void PipelineExecutor::listen_to(size_t worker) {
  std::vector<std::byte> payload;
  while (true) {
    const auto header = workers_[worker].plans->receive(payload, kNoDeadline);
    const double received = steady_seconds();
    if (!header) return lose(named_error(workers_[worker].name, header.error()));
    if (const auto taken = take_frame(worker, header.value(), payload, received); !taken) {
      workers_[worker].plans->close();
      return lose(named_error(workers_[worker].name, taken.error()));
    }
  }
}

Result<std::monostate> PipelineExecutor::take_frame(size_t worker, const FrameHeader& header,
                                                    std::vector<std::byte>& payload, double received) {
  if (header.kind == FrameKind::kActivations) {
    if (!stages_.output || worker + 1 != workers_.size()) {
      return Error(ErrorCode::kCorrupt, "rows, which the head does not take from it");
    }
    {
      const std::lock_guard lock(mutex_);
      const StepPtr step = find(header.epoch, header.id);
      if (!step) return std::monostate{};  // of an epoch that is over
      step->moments.returned = received;
      std::swap(step->payload, payload);
      returned_.push_back(step);
    }
    work_.notify_one();
    return std::monostate{};
  }
  if (header.kind != FrameKind::kResult) return Error(ErrorCode::kCorrupt, "a frame that no worker sends");
  auto outcome = decode_outcome(payload);
  if (!outcome) return outcome.error();
  Result<StepResult>& result = outcome.value().result;
  if (!result) {
    fail_steps(header.epoch, result.error());
    return std::monostate{};
  }
  if (outcome.value().stages.size() != 1) return Error(ErrorCode::kCorrupt, "a report that is not of one stage");
  {
    const std::lock_guard lock(mutex_);
    const StepPtr step = find(header.epoch, header.id);
    if (!step) return std::monostate{};
    ++step->reports;
    step->workers[worker] = {.report = outcome.value().stages.front(), .received = received};
    if (!stages_.output && worker + 1 == workers_.size()) {
      if (const auto fits = check_result(*step->plan, result.value()); !fits) return fits;
      step->moments.returned = received;
      step->result = std::move(result.value());
      step->has_result = true;
    }
  }
  results_.notify_all();
  return std::monostate{};
}

}  // namespace headrace::cluster
