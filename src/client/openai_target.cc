#include "client/openai_target.h"

#include <nlohmann/json.hpp>

#include "base/cat.h"
#include "base/error.h"
#include "client/answer_chunk.h"

namespace headrace::client {

std::string_view cache_state_name(CacheState state) noexcept {
  switch (state) {
    case CacheState::kWarm:
      return "warm";
    case CacheState::kColdSalt:
      return "cold (cache_salt)";
    case CacheState::kColdText:
      return "cold (unique text)";
  }
  return "";
}

bool is_chat(const OpenAiTarget& target) noexcept { return target.endpoint.ends_with("chat/completions"); }

std::string request_body(const OpenAiTarget& target, std::string_view prompt, int64_t max_tokens,
                         std::string_view cache_salt) {
  nlohmann::ordered_json body{{"model", target.model}};
  if (is_chat(target)) {
    body["messages"] = nlohmann::ordered_json::array({{{"role", "user"}, {"content", prompt}}});
    body["max_completion_tokens"] = max_tokens;
  } else {
    body["prompt"] = prompt;
    body["max_tokens"] = max_tokens;
  }
  if (target.temperature) body["temperature"] = *target.temperature;
  if (target.top_p) body["top_p"] = *target.top_p;
  if (target.top_k) body["top_k"] = *target.top_k;
  if (target.ignore_eos) body["ignore_eos"] = true;
  body["stream"] = true;
  body["stream_options"] = {{"include_usage", true}};
  if (!cache_salt.empty()) body["cache_salt"] = cache_salt;
  if (!target.extra_body.empty()) {
    const auto extra = nlohmann::ordered_json::parse(target.extra_body, nullptr, false);
    if (!extra.is_object()) throw Error(ErrorCode::kInvalidArgument, "--extra-body: expected a JSON object");
    body.update(extra);
  }
  return body.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

HttpRequest http_request(const OpenAiTarget& target, std::string body) {
  return http_request(target, target.endpoint, std::move(body));
}

HttpRequest http_request(const OpenAiTarget& target, std::string_view path, std::string body) {
  std::string_view base = target.base_url;
  while (base.ends_with('/')) base.remove_suffix(1);
  HttpRequest request{.url = cat(base, path.starts_with('/') ? "" : "/", path),
                      .headers = {"Content-Type: application/json"},
                      .body = std::move(body),
                      .timeout_seconds = target.timeout_seconds};
  if (!target.api_key.empty()) request.headers.push_back(cat("Authorization: Bearer ", target.api_key));
  request.headers.insert(request.headers.end(), target.headers.begin(), target.headers.end());
  return request;
}

std::string first_model(HttpClient& client, const OpenAiTarget& target) {
  const HttpRequest request = http_request(target, "/v1/models", "");
  const HttpAnswer answer = client.fetch(request);
  if (!answer.error.empty() || answer.status != 200) {
    throw Error(ErrorCode::kUnavailable,
                cat(request.url, ": ", failure_text(answer), "; is a server running there? (--base-url, --model)"));
  }
  const auto json = nlohmann::json::parse(answer.body, nullptr, false);
  if (json.is_object() && json.contains("data") && json["data"].is_array() && !json["data"].empty()) {
    const auto& model = json["data"][0];
    if (model.is_object() && model.contains("id") && model["id"].is_string()) return model["id"].get<std::string>();
  }
  throw Error(ErrorCode::kUnavailable, cat(request.url, ": no model is listed; name one with --model"));
}

std::string failure_text(const HttpAnswer& answer) {
  if (!answer.error.empty()) return answer.error;
  const AnswerChunk chunk = read_answer_chunk(answer.body);
  return cat("status ", answer.status, chunk.error.empty() ? "" : ": ", printable(chunk.error, 400));
}

}  // namespace headrace::client
