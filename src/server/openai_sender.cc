#include "server/openai_sender.h"

#include <fmt/format.h>

#include "server/error_reply.h"

namespace headrace::server {
namespace {

std::variant<openai::PendingAnswer, openai::StreamWriter> answer_of(openai::AnswerPlan plan) {
  if (plan.common.stream) return openai::StreamWriter(std::move(plan));
  return openai::PendingAnswer(std::move(plan));
}

}  // namespace

OpenAiSender::OpenAiSender(std::shared_ptr<Responder> responder, std::chrono::steady_clock::time_point arrived,
                           openai::AnswerPlan plan)
    : responder_(std::move(responder)), arrived_(arrived), answer_(answer_of(std::move(plan))) {}

bool OpenAiSender::add(size_t request, GenerationEvent event) {
  if (auto* pending = std::get_if<openai::PendingAnswer>(&answer_)) {
    finished_ = pending->add(request, std::move(event));
    if (finished_) responder_->send(timed({.body = openai::to_text(pending->body().body)}));
    return true;
  }
  auto& writer = std::get<openai::StreamWriter>(answer_);
  buffer_.clear();
  writer.add(request, std::move(event), buffer_);
  if (!buffer_.empty()) {
    if (!std::exchange(begun_, true)) {
      responder_->begin(timed({.content_type = "text/event-stream; charset=utf-8",
                               .headers = {{"Cache-Control", "no-cache"}, {"X-Accel-Buffering", "no"}}}));
    }
    if (!responder_->write(buffer_)) return false;
  }
  finished_ = writer.finished();
  if (finished_) responder_->finish();
  return true;
}

bool OpenAiSender::calls_tools() const noexcept {
  return std::visit([](const auto& answer) { return answer.calls_tools(); }, answer_);
}

int OpenAiSender::fail(const std::exception& error) {
  HttpReply reply = error_reply(error);
  const int status = begun_ ? 200 : reply.status;
  if (begun_) {
    buffer_.clear();
    openai::StreamWriter::append_event(reply.body, buffer_);
    responder_->write(buffer_);
    responder_->abort();
  } else {
    responder_->send(timed(std::move(reply)));
  }
  return status;
}

HttpReply OpenAiSender::timed(HttpReply reply) const {
  const std::chrono::duration<double, std::milli> taken = std::chrono::steady_clock::now() - arrived_;
  reply.headers.push_back({"openai-processing-ms", fmt::format("{:.0f}", taken.count())});
  return reply;
}

}  // namespace headrace::server
