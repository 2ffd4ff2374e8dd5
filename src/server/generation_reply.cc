#include "server/generation_reply.h"

#include <algorithm>

#include "server/error_reply.h"
#include "server/generation.h"

namespace headrace::server {
namespace {

constexpr double kDrainSeconds = 5;  // until another server has taken over
constexpr double kNodeSeconds = 5;   // until a machine is back, perhaps

/// Of two limits of time, of which 0 is none.
double shorter(double a, double b) { return a > 0 && b > 0 ? std::min(a, b) : std::max(a, b); }

}  // namespace

GenerationReply::GenerationReply(Exchange exchange, ServerContext& server, RequestShape shape,
                                 std::vector<Request> requests, std::unique_ptr<AnswerSender> sender)
    : exchange_(std::move(exchange)),
      server_(server),
      watch_(server.metrics, server.log, server.traces.get(), exchange_, std::move(shape)),
      requests_(std::move(requests)),
      sender_(std::move(sender)) {
  for (Request& request : requests_) {
    request.tenant = exchange_.caller.tenant;
    request.cache_salt = joined_salt(exchange_.caller.cache_salt, request.cache_salt);
    request.queue_timeout_seconds = server.options.queue_timeout_seconds;
    request.timeout_seconds = shorter(server.options.request_timeout_seconds, request.timeout_seconds);
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
    if (event.error && event.error->code() == ErrorCode::kUnavailable) {
      return fail(unavailable("node_lost", kNodeSeconds, event.error->message()), Outcome::kError);
    }
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
    if (!sender_->add(request, std::move(event))) {
      cancel_all();
      return end(Outcome::kAborted, kClientGone);
    }
    if (sender_->finished()) end(sender_->calls_tools() ? Outcome::kToolCalls : outcome_of_end(), 200);
  } catch (const std::exception& error) {
    fail(error, Outcome::kError);
  }
}

void GenerationReply::fail(const std::exception& error, Outcome outcome) {
  cancel_all();
  end(outcome, sender_->fail(error));
}

void GenerationReply::end(Outcome outcome, int status) {
  ended_ = true;
  watch_.end(outcome, status);
}

Outcome GenerationReply::outcome_of_end() const { return cut_ ? Outcome::kLength : Outcome::kStop; }

}  // namespace headrace::server
