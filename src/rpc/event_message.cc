#include "rpc/event_message.h"

#include "base/cat.h"
#include "headrace/v1/generation.pb.h"

namespace headrace::rpc {
namespace {

constexpr int32_t kMostChoices = 4096;  // that a server can be told to allow (--max-choices)

v1::FinishReason reason_message(FinishReason reason) {
  switch (reason) {
    case FinishReason::kStop:
      return v1::FINISH_REASON_STOP;
    case FinishReason::kLength:
      return v1::FINISH_REASON_LENGTH;
    case FinishReason::kCancelled:
      break;
  }
  return v1::FINISH_REASON_CANCELLED;
}

std::optional<FinishReason> read_reason(v1::FinishReason reason) {
  switch (reason) {
    case v1::FINISH_REASON_NONE:
      return std::nullopt;
    case v1::FINISH_REASON_STOP:
      return FinishReason::kStop;
    case v1::FINISH_REASON_LENGTH:
      return FinishReason::kLength;
    default:
      return FinishReason::kCancelled;
  }
}

void write_logprob(const TokenLogprob& logprob, v1::TokenLogprob& message) {
  message.set_token(logprob.token);
  message.set_logprob(logprob.logprob);
  message.set_rank(logprob.rank);
}

TokenLogprob read_logprob(const v1::TokenLogprob& message) {
  return {.token = message.token(), .logprob = message.logprob(), .rank = message.rank()};
}

using LogprobsField = google::protobuf::RepeatedPtrField<v1::TokenLogprobs>;

void write_logprobs(const std::vector<TokenLogprobs>& logprobs, LogprobsField& field) {
  for (const TokenLogprobs& place : logprobs) {
    v1::TokenLogprobs& message = *field.Add();
    write_logprob(place.chosen, *message.mutable_chosen());
    for (const TokenLogprob& top : place.top) write_logprob(top, *message.add_top());
  }
}

std::vector<TokenLogprobs> read_logprobs(const LogprobsField& field) {
  std::vector<TokenLogprobs> logprobs;
  logprobs.reserve(static_cast<size_t>(field.size()));
  for (const v1::TokenLogprobs& message : field) {
    TokenLogprobs& place = logprobs.emplace_back(TokenLogprobs{.chosen = read_logprob(message.chosen())});
    for (const v1::TokenLogprob& top : message.top()) place.top.push_back(read_logprob(top));
  }
  return logprobs;
}

void write_usage(const Usage& usage, v1::Usage& message) {
  message.set_prompt_tokens(usage.prompt_tokens);
  message.set_cached_tokens(usage.cached_tokens);
  message.set_completion_tokens(usage.completion_tokens);
  message.set_queued_seconds(usage.queued_seconds);
  message.set_first_token_seconds(usage.first_token_seconds);
  message.set_total_seconds(usage.total_seconds);
}

Usage read_usage(const v1::Usage& message) {
  return {.prompt_tokens = message.prompt_tokens(),
          .cached_tokens = message.cached_tokens(),
          .completion_tokens = message.completion_tokens(),
          .queued_seconds = message.queued_seconds(),
          .first_token_seconds = message.first_token_seconds(),
          .total_seconds = message.total_seconds()};
}

void write_cause(const StopCause& cause, v1::StopCause& message) {
  if (cause.token) message.set_token(*cause.token);
  message.set_text(cause.text);
}

StopCause read_cause(const v1::StopCause& message) {
  StopCause cause{.text = message.text()};
  if (message.has_token()) cause.token = message.token();
  return cause;
}

/// What events and choices have in common.
template <class Message, class Part>
void write_part(const Part& part, Message& message) {
  message.set_text(part.text);
  message.mutable_tokens()->Add(part.tokens.begin(), part.tokens.end());
  write_logprobs(part.logprobs, *message.mutable_logprobs());
  if (part.stop_cause.token || !part.stop_cause.text.empty()) {
    write_cause(part.stop_cause, *message.mutable_stop_cause());
  }
}

template <class Part, class Message>
Part read_part(const Message& message) {
  Part part;
  part.text = message.text();
  part.tokens.assign(message.tokens().begin(), message.tokens().end());
  part.logprobs = read_logprobs(message.logprobs());
  part.stop_cause = read_cause(message.stop_cause());
  return part;
}

}  // namespace

v1::GenerateEvent event_message(const GenerationEvent& event) {
  v1::GenerateEvent message;
  write_part(event, message);
  message.set_choice(event.choice);
  write_logprobs(event.prompt_logprobs, *message.mutable_prompt_logprobs());
  if (event.finish_reason) message.set_finish_reason(reason_message(*event.finish_reason));
  message.set_last(event.last);
  if (event.finish_reason || event.last) write_usage(event.usage, *message.mutable_usage());
  return message;
}

GenerationEvent read_event(const v1::GenerateEvent& message) {
  auto event = read_part<GenerationEvent>(message);
  event.choice = message.choice();
  if (event.choice < 0 || event.choice >= kMostChoices) {
    throw Error(ErrorCode::kCorrupt, cat("an event of choice ", event.choice, ", expected 0 to ", kMostChoices - 1));
  }
  event.prompt_logprobs = read_logprobs(message.prompt_logprobs());
  event.finish_reason = read_reason(message.finish_reason());
  event.last = message.last();
  event.usage = read_usage(message.usage());
  return event;
}

v1::GenerateResponse answer_message(const Answer& answer) {
  v1::GenerateResponse message;
  for (const Choice& choice : answer.choices) {
    v1::Choice& written = *message.add_choices();
    write_part(choice, written);
    written.set_finish_reason(reason_message(choice.reason));
  }
  write_logprobs(answer.prompt_logprobs, *message.mutable_prompt_logprobs());
  write_usage(answer.usage, *message.mutable_usage());
  return message;
}

Answer read_answer(const v1::GenerateResponse& message) {
  Answer answer;
  for (const v1::Choice& written : message.choices()) {
    auto choice = read_part<Choice>(written);
    choice.reason = read_reason(written.finish_reason()).value_or(FinishReason::kCancelled);
    answer.choices.push_back(std::move(choice));
  }
  answer.prompt_logprobs = read_logprobs(message.prompt_logprobs());
  answer.usage = read_usage(message.usage());
  return answer;
}

}  // namespace headrace::rpc
