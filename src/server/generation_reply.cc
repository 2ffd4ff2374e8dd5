#include "server/generation_reply.h"

#include <fmt/format.h>

#include "server/error_reply.h"
#include "server/generation.h"

namespace headrace::server {
namespace {

constexpr double kDrainSeconds = 5;  // until another server has taken over

std::variant<openai::PendingAnswer, openai::StreamWriter> answer_of(openai::AnswerPlan plan) {
  if (plan.common.stream) return openai::StreamWriter(std::move(plan));
  return openai::PendingAnswer(std::move(plan));
}

RequestShape shape_of(std::string endpoint, const openai::CommonFields& common) {
  return {.endpoint = std::move(endpoint),
          .choices = common.sampling.n,
          .max_tokens = common.sampling.max_tokens,
          .stream = common.stream,
          .model = common.model};
}

}  // namespace

GenerationReply::GenerationReply(Exchange exchange, ServerContext& server, std::string endpoint,
                                 openai::AnswerPlan plan)
    : exchange_(std::move(exchange)),
      server_(server),
      watch_(server.metrics, server.log, server.traces.get(), exchange_, shape_of(std::move(endpoint), plan.common)),
      requests_(std::move(plan.requests)),
      answer_(answer_of(std::move(plan))) {
  for (Request& request : requests_) {
    request.tenant = exchange_.caller.tenant;
    request.cache_salt = joined_salt(exchange_.caller.cache_salt, request.cache_salt);
    request.queue_timeout_seconds = server.options.queue_timeout_seconds;
    request.timeout_seconds = server.options.request_timeout_seconds;
  }
}

void GenerationReply::start() {
  exchange_.responder->on_gone([weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->client_gone();
  });
  if (submit_all()) take_early_events();
}

bool GenerationReply::submit_all() {
  try {
    for (size_t i = 0; i < requests_.size(); ++i) {
      const RequestId id = server_.model().submit(std::move(requests_[i]), server_.relay.sink(shared_from_this(), i));
      const std::lock_guard lock(mutex_);
      ids_.push_back(id);
    }
    return true;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kUnavailable) {
      fail(error, Outcome::kRejected);
    } else {
      fail(queue_full(server_.model().figures().backlog_seconds, error.message()), Outcome::kRejected);
    }
  } catch (const std::exception& error) {
    fail(error, Outcome::kError);
  }
  const std::lock_guard lock(mutex_);
  submitting_ = false;
  early_.clear();
  return false;
}

void GenerationReply::take_early_events() {
  bool gone = false;
  for (Early early;;) {
    {
      const std::lock_guard lock(mutex_);
      early.swap(early_);
      submitting_ = !early.empty();
      gone = gone_;
    }
    if (early.empty()) break;
    for (auto& [request, event] : early) handle(request, std::move(event));
    early.clear();
  }
  if (gone) cancel_all();  // it went before all were submitted
}

void GenerationReply::on_event(size_t request, GenerationEvent event) noexcept {
  {
    const std::lock_guard lock(mutex_);
    if (submitting_) {
      early_.emplace_back(request, std::move(event));
      return;
    }
  }
  handle(request, std::move(event));
}

void GenerationReply::client_gone() {
  {
    const std::lock_guard lock(mutex_);
    gone_ = true;
  }
  cancel_all();
}

void GenerationReply::cancel_all() {
  std::vector<RequestId> ids;
  {
    const std::lock_guard lock(mutex_);
    ids = ids_;
  }
  Model* model = server_.state.model();  // nullptr at the server's end: then all is cancelled anyway
  for (const RequestId id : ids) {
    if (model != nullptr) model->cancel(id);
  }
}

void GenerationReply::handle(size_t request, GenerationEvent event) noexcept {
  if (ended_) return;
  try {
    watch_.event(request, event);
    if (event.error) {
      return fail(*event.error, event.error->code() == ErrorCode::kTimeout ? Outcome::kTimeout : Outcome::kError);
    }
    if (event.finish_reason == FinishReason::kCancelled) {
      bool gone = false;
      {
        const std::lock_guard lock(mutex_);
        gone = gone_;
      }
      if (gone) return end(Outcome::kAborted, kClientGone);
      return fail(unavailable("draining", kDrainSeconds, "the server is going away; the answer was cut off"),
                  Outcome::kAborted);
    }
    cut_ = cut_ || event.finish_reason == FinishReason::kLength;
    if (std::holds_alternative<openai::StreamWriter>(answer_)) {
      write(request, std::move(event));
    } else {
      add_to_whole(request, std::move(event));
    }
  } catch (const std::exception& error) {
    fail(error, Outcome::kError);
  }
}

void GenerationReply::write(size_t request, GenerationEvent event) {
  auto& writer = std::get<openai::StreamWriter>(answer_);
  buffer_.clear();
  writer.add(request, std::move(event), buffer_);
  if (!buffer_.empty()) {
    if (!std::exchange(begun_, true)) {
      exchange_.responder->begin(timed({.content_type = "text/event-stream; charset=utf-8",
                                        .headers = {{"Cache-Control", "no-cache"}, {"X-Accel-Buffering", "no"}}}));
    }
    if (!exchange_.responder->write(buffer_)) {
      cancel_all();
      return end(Outcome::kAborted, kClientGone);
    }
  }
  if (!writer.finished()) return;
  exchange_.responder->finish();
  end(writer.calls_tools() ? Outcome::kToolCalls : outcome_of_end(), 200);
}

void GenerationReply::add_to_whole(size_t request, GenerationEvent event) {
  auto& pending = std::get<openai::PendingAnswer>(answer_);
  if (!pending.add(request, std::move(event))) return;
  exchange_.responder->send(timed({.body = openai::to_text(pending.body().body)}));
  end(pending.calls_tools() ? Outcome::kToolCalls : outcome_of_end(), 200);
}

void GenerationReply::fail(const std::exception& error, Outcome outcome) {
  cancel_all();
  HttpReply reply = error_reply(error);
  const int status = begun_ ? 200 : reply.status;
  if (begun_) {
    buffer_.clear();
    openai::StreamWriter::append_event(reply.body, buffer_);
    exchange_.responder->write(buffer_);
    exchange_.responder->abort();
  } else {
    exchange_.responder->send(timed(std::move(reply)));
  }
  end(outcome, status);
}

void GenerationReply::end(Outcome outcome, int status) {
  ended_ = true;
  watch_.end(outcome, status);
}

Outcome GenerationReply::outcome_of_end() const { return cut_ ? Outcome::kLength : Outcome::kStop; }

HttpReply GenerationReply::timed(HttpReply reply) const {
  const std::chrono::duration<double, std::milli> taken = std::chrono::steady_clock::now() - exchange_.request.arrived;
  reply.headers.push_back({"openai-processing-ms", fmt::format("{:.0f}", taken.count())});
  return reply;
}

}  // namespace headrace::server
