#pragma once

#include <utility>
#include <vector>

#include "client/request_record.h"

namespace headrace::client {

/// A request for tests that was completed as asked for: tokens at these times, all of them with text.
inline RequestRecord completed_record(double sent, std::vector<double> token_times, int64_t prompt_tokens = 10) {
  RequestRecord record;
  record.status = RequestStatus::kCompleted;
  record.arrival = record.due = record.sent = sent;
  record.first_chunk = record.first_text = token_times.front();
  record.last_chunk = record.end = token_times.back();
  record.prompt_tokens = prompt_tokens;
  record.usage_prompt_tokens = prompt_tokens;
  record.max_tokens = static_cast<int64_t>(token_times.size());
  record.usage_completion_tokens = record.max_tokens;
  record.token_times = std::move(token_times);
  record.http_status = 200;
  record.finish_reason = "length";
  record.done_marker = true;
  return record;
}

}  // namespace headrace::client
