#include "openai/answer_json.h"

#include <algorithm>
#include <cmath>

#include "base/cat.h"
#include "base/utf8.h"
#include "openai/json_text.h"
#include "text/chat_renderer.h"

namespace headrace::openai {
namespace {

/// JSON has no infinity; this is what vLLM writes.
double logprob_number(float logprob) { return std::isfinite(logprob) ? static_cast<double>(logprob) : -9999.0; }

/// A token's text; a part of a character as OpenAI writes it, "bytes:\\xe2\\x80", so that no two are alike.
std::string token_name(int32_t token, const TokenNames& names) {
  if (names.as_ids) return cat("token_id:", token);
  std::string bytes = names.bytes(token);
  if (is_utf8(bytes)) return bytes;
  std::string name = "bytes:";
  for (const char c : bytes) {
    constexpr char kDigits[] = "0123456789abcdef";
    const auto byte = static_cast<unsigned char>(c);
    name += {'\\', 'x', kDigits[byte >> 4], kDigits[byte & 15]};
  }
  return name;
}

Json bytes_json(const std::string& bytes) {
  Json list = Json::array();
  for (const char c : bytes) list.push_back(static_cast<unsigned char>(c));
  return list;
}

Json chat_token_json(const TokenLogprob& token, const TokenNames& names) {
  return {{"token", token_name(token.token, names)},
          {"logprob", logprob_number(token.logprob)},
          {"bytes", bytes_json(names.bytes(token.token))}};
}

}  // namespace

std::string_view finish_reason_text(FinishReason reason) noexcept {
  return reason == FinishReason::kLength ? "length" : "stop";
}

Json stop_reason_json(const StopCause& cause) {
  if (!cause.text.empty()) return cause.text;
  return cause.token ? Json(*cause.token) : Json();
}

Json head_json(const AnswerHead& head, std::string_view object) {
  return {{"id", head.id},
          {"object", std::string(object)},
          {"created", head.created},
          {"model", head.model},
          {"system_fingerprint", head.fingerprint}};
}

void append_usage(std::string& out, const Usage& usage, int32_t reasoning_tokens) {
  out += "{\"prompt_tokens\":";
  append_number(out, usage.prompt_tokens);
  out += ",\"completion_tokens\":";
  append_number(out, usage.completion_tokens);
  out += ",\"total_tokens\":";
  append_number(out, int64_t{usage.prompt_tokens} + usage.completion_tokens);
  out += ",\"prompt_tokens_details\":{\"cached_tokens\":";
  append_number(out, usage.cached_tokens);
  out += "},\"completion_tokens_details\":{\"reasoning_tokens\":";
  append_number(out, reasoning_tokens);
  // No request brings a prediction of its own.
  out += ",\"accepted_prediction_tokens\":0,\"rejected_prediction_tokens\":0}}";
}

void append_timings(std::string& out, const Usage& usage) {
  const bool begun = usage.first_token_seconds > 0;
  const double prompt = std::max((begun ? usage.first_token_seconds : usage.total_seconds) - usage.queued_seconds, 0.0);
  const double predicted = begun ? std::max(usage.total_seconds - usage.first_token_seconds, 0.0) : 0.0;
  const int32_t read = usage.prompt_tokens - usage.cached_tokens;
  const auto rate = [](int32_t tokens, double seconds) { return seconds > 0 ? tokens / seconds : 0.0; };
  out += cat("{\"cache_n\":", usage.cached_tokens, ",\"prompt_n\":", read, ",\"prompt_ms\":", prompt * 1e3,
             ",\"prompt_per_second\":", rate(read, prompt), ",\"predicted_n\":", usage.completion_tokens,
             ",\"predicted_ms\":", predicted * 1e3,
             ",\"predicted_per_second\":", rate(usage.completion_tokens, predicted), "}");
}

Usage sum_of(std::span<const Usage> usages) {
  Usage sum;
  for (const Usage& usage : usages) {
    sum.prompt_tokens += usage.prompt_tokens;
    sum.cached_tokens += usage.cached_tokens;
    sum.completion_tokens += usage.completion_tokens;
    sum.queued_seconds = std::max(sum.queued_seconds, usage.queued_seconds);
    sum.first_token_seconds = std::max(sum.first_token_seconds, usage.first_token_seconds);
    sum.total_seconds = std::max(sum.total_seconds, usage.total_seconds);
  }
  return sum;
}

size_t count_characters(std::string_view text) noexcept {
  // Bytes that do not continue a character.
  return static_cast<size_t>(
      std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

Json chat_logprobs_json(std::span<const TokenLogprobs> tokens, const TokenNames& names) {
  Json content = Json::array();
  for (const TokenLogprobs& token : tokens) {
    Json one = chat_token_json(token.chosen, names);
    Json top = Json::array();
    for (const TokenLogprob& other : token.top) top.push_back(chat_token_json(other, names));
    one["top_logprobs"] = std::move(top);
    content.push_back(std::move(one));
  }
  return {{"content", std::move(content)}, {"refusal", nullptr}};
}

Json completion_logprobs_json(std::span<const TokenLogprobs> tokens, const TokenNames& names, size_t& offset,
                              std::optional<int32_t> first_unknown) {
  Json texts = Json::array(), logprobs = Json::array(), tops = Json::array(), offsets = Json::array();
  const auto add = [&](int32_t token, Json logprob, Json top) {
    texts.push_back(token_name(token, names));
    logprobs.push_back(std::move(logprob));
    tops.push_back(std::move(top));
    offsets.push_back(offset);
    offset += count_characters(names.bytes(token));
  };
  if (first_unknown) add(*first_unknown, nullptr, nullptr);
  for (const TokenLogprobs& token : tokens) {
    Json top = Json::object();
    for (const TokenLogprob& other : token.top) top[token_name(other.token, names)] = logprob_number(other.logprob);
    // The token itself is always there, as in vLLM.
    top[token_name(token.chosen.token, names)] = logprob_number(token.chosen.logprob);
    add(token.chosen.token, logprob_number(token.chosen.logprob), std::move(top));
  }
  return {{"tokens", std::move(texts)},
          {"token_logprobs", std::move(logprobs)},
          {"top_logprobs", std::move(tops)},
          {"text_offset", std::move(offsets)}};
}

Json first_logprobs_json(const EchoedPrompt& echoed, std::span<const TokenLogprobs> prompt,
                         std::span<const TokenLogprobs> answer, const TokenNames& names, size_t& offset) {
  if (echoed.tokens.empty()) {
    offset = count_characters(echoed.text);
    return completion_logprobs_json(answer, names, offset);
  }
  std::vector<TokenLogprobs> tokens(prompt.begin(), prompt.end());
  tokens.insert(tokens.end(), answer.begin(), answer.end());
  offset = 0;
  return completion_logprobs_json(tokens, names, offset, echoed.tokens.front());
}

Json prompt_logprobs_json(std::span<const TokenLogprobs> tokens, const TokenNames& names) {
  Json list = Json::array({nullptr});
  const auto add = [&](Json& place, const TokenLogprob& token) {
    place[std::to_string(token.token)] = {{"logprob", logprob_number(token.logprob)},
                                          {"rank", token.rank},
                                          {"decoded_token", token_name(token.token, names)}};
  };
  for (const TokenLogprobs& token : tokens) {
    Json place = Json::object();
    add(place, token.chosen);
    for (const TokenLogprob& other : token.top) add(place, other);
    list.push_back(std::move(place));
  }
  return list;
}

namespace {

Json function_json(const ToolCallDelta& call) { return {{"name", call.name}, {"arguments", call.arguments}}; }

Json tool_calls_json(std::span<const ToolCallDelta> calls) {
  Json list = Json::array();
  for (const ToolCallDelta& call : calls) {
    list.push_back({{"id", call.id}, {"type", "function"}, {"function", function_json(call)}});
  }
  return list;
}

}  // namespace

Json chat_choice_json(size_t index, const Choice& choice, const AssistantMessage& message, bool logprobs,
                      const TokenNames& names) {
  Json said = {{"role", "assistant"}, {"content", message.content}, {"refusal", nullptr}};
  if (!message.reasoning.empty()) said["reasoning_content"] = message.reasoning;
  if (!message.tool_calls.empty()) {
    if (message.content.empty()) said["content"] = nullptr;
    if (message.old_form) {
      said["function_call"] = function_json(message.tool_calls.front());
    } else {
      said["tool_calls"] = tool_calls_json(message.tool_calls);
    }
  }
  const bool is_old_call = message.old_form && message.finish_reason == kToolCalls;
  return {{"index", index},
          {"message", std::move(said)},
          {"logprobs", logprobs ? chat_logprobs_json(choice.logprobs, names) : Json()},
          {"finish_reason", std::string(is_old_call ? kFunctionCall : message.finish_reason)},
          {"stop_reason", stop_reason_json(choice.stop_cause)}};
}

Json completion_choices_json(const Answer& answer, int32_t first_index, const EchoedPrompt& echoed, bool logprobs,
                             const TokenNames& names) {
  Json choices = Json::array();
  for (const Choice& choice : answer.choices) {
    Json shown;
    if (logprobs) {
      size_t offset = 0;
      shown = first_logprobs_json(echoed, answer.prompt_logprobs, choice.logprobs, names, offset);
    }
    choices.push_back({{"index", first_index + static_cast<int32_t>(choices.size())},
                       {"text", echoed.text + choice.text},
                       {"logprobs", std::move(shown)},
                       {"finish_reason", std::string(finish_reason_text(choice.reason))},
                       {"stop_reason", stop_reason_json(choice.stop_cause)}});
  }
  return choices;
}

ErrorAnswer error_answer(const Error& error) {
  struct Kind {
    int status;
    const char* type;
    const char* code;
  };
  Kind kind{500, "server_error", "internal"};
  Json param;
  std::string code;
  if (const auto* context = dynamic_cast<const ContextLengthError*>(&error)) {
    Json body = {{"message", error.message()},
                 {"type", "invalid_request_error"},
                 {"param", nullptr},
                 {"code", "context_length_exceeded"},
                 {"n_prompt_tokens", context->prompt_tokens()},
                 {"n_ctx", context->max_model_len()}};
    return {400, {{"error", std::move(body)}}};
  }
  if (const auto* failed = dynamic_cast<const TemplateError*>(&error)) {
    Json body = {{"message", error.message()},
                 {"type", "invalid_request_error"},
                 {"param", failed->kind() == TemplateError::Kind::kSyntax ? "chat_template" : "messages"},
                 {"code", "template_error"}};
    return {400, {{"error", std::move(body)}}};
  }
  switch (error.code()) {
    case ErrorCode::kInvalidArgument:
    case ErrorCode::kUnsupported:
      kind = {400, "invalid_request_error", "invalid_value"};
      break;
    case ErrorCode::kNotFound:
      kind = {404, "not_found_error", "not_found"};
      break;
    case ErrorCode::kUnavailable:
      kind = {503, "server_error", "overloaded"};
      break;
    case ErrorCode::kTimeout:
      kind = {504, "server_error", "timeout"};
      break;
    default:
      break;
  }
  code = kind.code;
  if (const auto* parameter = dynamic_cast<const ParameterError*>(&error)) {
    const bool is_given = parameter->parameter() == "structured_output";
    if (is_given || parameter->parameter() == "tools") code = "invalid_schema";
    param = is_given ? "structured_outputs" : parameter->parameter();  // as the field is called
  }
  if (const auto* request = dynamic_cast<const RequestError*>(&error)) {
    code = request->openai_code();
    if (!request->param().empty()) param = request->param();
  }
  return {
      kind.status,
      {{"error", {{"message", error.message()}, {"type", kind.type}, {"param", std::move(param)}, {"code", code}}}}};
}

}  // namespace headrace::openai
