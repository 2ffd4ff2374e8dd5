#include "client/request_record.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/cat.h"
#include "base/error.h"
#include "client/json_lines.h"

namespace headrace::client {
namespace {

constexpr RequestStatus kStatuses[] = {RequestStatus::kCompleted, RequestStatus::kFailed, RequestStatus::kIncomplete,
                                       RequestStatus::kCancelled};

}  // namespace

std::string_view status_name(RequestStatus status) noexcept {
  switch (status) {
    case RequestStatus::kCompleted:
      return "completed";
    case RequestStatus::kFailed:
      return "failed";
    case RequestStatus::kIncomplete:
      return "incomplete";
    case RequestStatus::kCancelled:
      return "cancelled";
  }
  return "";
}

int64_t input_tokens(const RequestRecord& record) noexcept {
  return record.usage_prompt_tokens.value_or(record.prompt_tokens);
}

int64_t output_tokens(const RequestRecord& record) noexcept {
  return record.usage_completion_tokens.value_or(static_cast<int64_t>(record.token_times.size()));
}

nlohmann::ordered_json record_json(const RequestRecord& r) {
  nlohmann::ordered_json json{{"index", r.index},
                              {"status", status_name(r.status)},
                              {"arrival", r.arrival},
                              {"due", r.due},
                              {"sent", r.sent},
                              {"first_chunk", r.first_chunk},
                              {"first_text", r.first_text},
                              {"last_chunk", r.last_chunk},
                              {"end", r.end},
                              {"token_times", r.token_times},
                              {"prompt_tokens", r.prompt_tokens},
                              {"max_tokens", r.max_tokens},
                              {"http_status", r.http_status},
                              {"finish_reason", r.finish_reason},
                              {"error", r.error},
                              {"done_marker", r.done_marker},
                              {"text", r.text}};
  if (r.usage_prompt_tokens) json["usage_prompt_tokens"] = *r.usage_prompt_tokens;
  if (r.usage_completion_tokens) json["usage_completion_tokens"] = *r.usage_completion_tokens;
  if (r.cached_tokens) json["cached_tokens"] = *r.cached_tokens;
  return json;
}

RequestRecord read_record(const std::string& where, std::string_view line) {
  const nlohmann::json json = parse_json_line(where, line);
  RequestRecord r;
  try {
    const auto status = json.at("status").get<std::string>();
    const auto* found = std::ranges::find_if(kStatuses, [&](RequestStatus s) { return status_name(s) == status; });
    if (found == std::end(kStatuses)) throw LoadError(where, cat("status '", printable(status), "' is unknown"));
    r.status = *found;
    json.at("index").get_to(r.index);
    json.at("arrival").get_to(r.arrival);
    json.at("due").get_to(r.due);
    json.at("sent").get_to(r.sent);
    json.at("first_chunk").get_to(r.first_chunk);
    json.at("first_text").get_to(r.first_text);
    json.at("last_chunk").get_to(r.last_chunk);
    json.at("end").get_to(r.end);
    json.at("token_times").get_to(r.token_times);
    json.at("prompt_tokens").get_to(r.prompt_tokens);
    json.at("max_tokens").get_to(r.max_tokens);
    json.at("http_status").get_to(r.http_status);
    json.at("finish_reason").get_to(r.finish_reason);
    json.at("error").get_to(r.error);
    json.at("done_marker").get_to(r.done_marker);
    json.at("text").get_to(r.text);
    const auto optional_count = [&](const char* key, std::optional<int64_t>& to) {
      if (json.contains(key)) to = json.at(key).get<int64_t>();
    };
    optional_count("usage_prompt_tokens", r.usage_prompt_tokens);
    optional_count("usage_completion_tokens", r.usage_completion_tokens);
    optional_count("cached_tokens", r.cached_tokens);
  } catch (const nlohmann::json::exception& error) {
    throw LoadError(where, cat("not a record of a request: ", error.what()));
  }
  return r;
}

std::vector<RequestRecord> read_records(const std::string& path) {
  std::vector<RequestRecord> records;
  for_each_json_line(
      path, [&](const std::string& where, std::string_view line) { records.push_back(read_record(where, line)); });
  return records;
}

}  // namespace headrace::client
