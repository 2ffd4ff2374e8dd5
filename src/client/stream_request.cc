#include "client/stream_request.h"

#include "base/cat.h"
#include "base/error.h"
#include "client/answer_chunk.h"
#include "client/openai_target.h"

namespace headrace::client {
namespace {

constexpr size_t kMaxBodyKept = 1 << 20;

}  // namespace

StreamRequest::StreamRequest(RequestRecord& record, Time origin)
    : record_(record),
      origin_(origin),
      parser_([this](std::string_view type, std::string_view data) { take_event(type, data); }) {}

double StreamRequest::since_origin(Time at) const { return std::chrono::duration<double>(at - origin_).count(); }

void StreamRequest::on_bytes(int64_t status, std::string_view bytes, Time at) {
  now_ = at;
  if (!is_stream_ && begin_.size() < kMaxBodyKept) begin_ += bytes.substr(0, kMaxBodyKept - begin_.size());
  if (status != 200 || !record_.error.empty()) return;
  if (!parser_.feed(bytes)) record_.error = "an event of the stream is larger than 16 MiB";
}

void StreamRequest::take_event(std::string_view type, std::string_view data) {
  is_stream_ = true;
  begin_.clear();
  if (record_.done_marker) return;
  if (data == "[DONE]") {
    record_.done_marker = true;
    return;
  }
  take_answer(data);
  if (type == "error" && record_.error.empty()) record_.error = printable(data, 400);
}

void StreamRequest::take_answer(std::string_view data) {
  AnswerChunk chunk = read_answer_chunk(data);
  if (!chunk.valid) {
    if (record_.error.empty()) record_.error = cat("not JSON: ", printable(data, 200));
    return;
  }
  if (!chunk.error.empty() && record_.error.empty()) record_.error = printable(chunk.error, 400);
  if (chunk.prompt_tokens) record_.usage_prompt_tokens = chunk.prompt_tokens;
  if (chunk.completion_tokens) record_.usage_completion_tokens = chunk.completion_tokens;
  if (chunk.cached_tokens) record_.cached_tokens = chunk.cached_tokens;
  if (!chunk.has_choices) return;
  const double at = since_origin(now_);
  if (record_.first_chunk == 0) record_.first_chunk = at;
  record_.last_chunk = at;
  if (!chunk.text.empty() && record_.first_text == 0) record_.first_text = at;
  // No text can be a token that is held back until its character is whole; with a role or a reason it is none.
  const bool is_token = !chunk.text.empty() || (!chunk.has_role && chunk.finish_reason.empty());
  if (is_token) record_.token_times.push_back(at);
  record_.text += chunk.text;
  if (!chunk.finish_reason.empty()) record_.finish_reason = std::move(chunk.finish_reason);
}

void StreamRequest::on_end(const HttpEnd& end) {
  ended_ = true;
  now_ = end.at;
  record_.end = since_origin(end.at);
  record_.http_status = end.status;
  if (end.status == 200) {
    parser_.finish();
    if (!is_stream_ && !begin_.empty() && record_.error.empty()) take_answer(begin_);
  } else if (end.status != 0 && end.error.empty()) {
    record_.error = failure_text({.status = end.status, .body = begin_, .error = {}});
  }
  const bool some = !record_.token_times.empty();
  const bool whole = record_.done_marker || !record_.finish_reason.empty();
  if (end.cancelled) {
    record_.status = RequestStatus::kCancelled;
  } else if (!record_.error.empty()) {
    record_.status = RequestStatus::kFailed;
  } else if (!end.error.empty() && !record_.done_marker) {
    record_.status = some ? RequestStatus::kIncomplete : RequestStatus::kFailed;
  } else if (whole) {
    record_.status = RequestStatus::kCompleted;
  } else {
    record_.status = some ? RequestStatus::kIncomplete : RequestStatus::kFailed;
    record_.error = "the stream ended without a reason";
  }
  if (record_.error.empty() && record_.status != RequestStatus::kCompleted) record_.error = end.error;
}

}  // namespace headrace::client
