#include "rpc/request_message.h"

#include "base/cat.h"
#include "headrace/v1/generation.pb.h"

namespace headrace::rpc {
namespace {

[[noreturn]] void refuse(std::string_view field, std::string_view expected) {
  throw ParameterError(std::string(field), cat(field, ": expected ", expected));
}

void check_count(std::string_view field, int64_t found, int64_t most, std::string_view what) {
  if (found > most) refuse(field, cat("at most ", most, " ", what, ", found ", found));
}

int32_t bounded(std::string_view field, int32_t value, int32_t min, int32_t max) {
  if (value < min || value > max) refuse(field, cat("a number from ", min, " to ", max, ", found ", value));
  return value;
}

template <class Value>
std::vector<Value> list_of(const auto& repeated) {
  return {repeated.begin(), repeated.end()};
}

StructuredOutput read_structured_output(const v1::StructuredOutput& message) {
  switch (message.kind_case()) {
    case v1::StructuredOutput::kJsonSchema:
      return JsonSchemaOutput{message.json_schema()};
    case v1::StructuredOutput::kJsonObject:
      if (!message.json_object()) return std::monostate();
      return JsonObjectOutput{};
    case v1::StructuredOutput::kRegex:
      return RegexOutput{message.regex()};
    case v1::StructuredOutput::kChoice:
      return ChoiceOutput{list_of<std::string>(message.choice().texts())};
    case v1::StructuredOutput::kGrammar:
      return GrammarOutput{.lark = message.grammar()};
    case v1::StructuredOutput::kStructuralTag:
      return StructuralTagOutput{message.structural_tag()};
    case v1::StructuredOutput::KIND_NOT_SET:
      break;
  }
  return std::monostate();
}

StructuredOutputStart read_start(const v1::StructuredOutputStart& message) {
  return {.reasoning_begin = message.reasoning_begin(),
          .reasoning_end = message.reasoning_end(),
          .in_reasoning = message.in_reasoning(),
          .marks = list_of<std::string>(message.marks()),
          .first_marks = list_of<std::string>(message.first_marks())};
}

void check_lists(const v1::SamplingParams& message, const openai::RequestLimits& limits) {
  check_count("stop", message.stop_size(), limits.max_stops, "texts");
  check_count("stop_token_ids", message.stop_token_ids_size(), limits.max_stops, "tokens");
  check_count("logit_bias", static_cast<int64_t>(message.logit_bias().size()), limits.max_logit_biases, "tokens");
  for (const std::string& stop : message.stop()) {
    if (stop.empty() || stop.size() > limits.max_stop_bytes) {
      refuse("stop", cat("texts of 1 to ", limits.max_stop_bytes, " bytes"));
    }
  }
}

}  // namespace

v1::GenerateRequest parse_request(std::string_view bytes) {
  v1::GenerateRequest message;
  if (bytes.size() > static_cast<size_t>(std::numeric_limits<int>::max()) ||
      !message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    throw Error(ErrorCode::kInvalidArgument,
                "the message is no headrace.v1.GenerateRequest, or a text in it is not UTF-8");
  }
  return message;
}

SamplingParams read_sampling(const v1::SamplingParams& message, const SamplingParams& defaults,
                             const openai::RequestLimits& limits) {
  check_lists(message, limits);
  SamplingParams params = defaults;
  if (message.has_temperature()) params.temperature = message.temperature();
  if (message.has_top_k()) params.top_k = message.top_k();
  if (message.has_top_p()) params.top_p = message.top_p();
  if (message.has_min_p()) params.min_p = message.min_p();
  if (message.has_typical_p()) params.typical_p = message.typical_p();
  if (message.has_repetition_penalty()) params.repetition_penalty = message.repetition_penalty();
  if (message.has_presence_penalty()) params.presence_penalty = message.presence_penalty();
  if (message.has_frequency_penalty()) params.frequency_penalty = message.frequency_penalty();
  if (message.has_seed()) params.seed = message.seed();
  for (const auto& [token, bias] : message.logit_bias()) params.logit_bias[token] = bias;
  params.allowed_token_ids = list_of<int32_t>(message.allowed_token_ids());
  for (const v1::Tokens& words : message.bad_words()) params.bad_words.push_back(list_of<int32_t>(words.ids()));
  params.structured_output = read_structured_output(message.structured_output());
  params.structured_output_start = read_start(message.structured_output_start());
  if (message.has_n()) params.n = bounded("n", message.n(), 1, limits.max_choices);
  if (message.has_best_of()) params.best_of = bounded("best_of", message.best_of(), 0, limits.max_choices);
  if (message.has_max_tokens()) params.max_tokens = message.max_tokens();
  if (message.has_min_tokens()) params.min_tokens = message.min_tokens();
  if (message.has_ignore_eos()) params.ignore_eos = message.ignore_eos();
  params.stop = list_of<std::string>(message.stop());
  params.stop_token_ids = list_of<int32_t>(message.stop_token_ids());
  if (message.has_include_stop_str_in_output()) {
    params.include_stop_str_in_output = message.include_stop_str_in_output();
  }
  if (message.has_skip_special_tokens()) params.skip_special_tokens = message.skip_special_tokens();
  params.shown_special_tokens = list_of<int32_t>(message.shown_special_tokens());
  if (message.has_logprobs()) params.logprobs = bounded("logprobs", message.logprobs(), 0, limits.max_logprobs);
  if (message.has_prompt_logprobs()) {
    params.prompt_logprobs = bounded("prompt_logprobs", message.prompt_logprobs(), 0, limits.max_logprobs);
  }
  return params;
}

Request read_request(const v1::GenerateRequest& message, const SamplingParams& defaults,
                     const openai::RequestLimits& limits) {
  Request request;
  switch (message.prompt_case()) {
    case v1::GenerateRequest::kText:
      request.input = message.text();
      break;
    case v1::GenerateRequest::kTokens:
      request.input = list_of<int32_t>(message.tokens().ids());
      break;
    case v1::GenerateRequest::kConversation: {
      std::vector<Message> messages;
      for (const v1::Message& m : message.conversation().messages()) messages.push_back({m.role(), m.content()});
      if (messages.empty()) refuse("conversation", "at least one message");
      request.input = std::move(messages);
      break;
    }
    case v1::GenerateRequest::PROMPT_NOT_SET:
      refuse("prompt", "text, tokens or conversation");
  }
  request.continues_text = !message.has_continues_text() || message.continues_text();
  request.sampling = read_sampling(message.sampling(), defaults, limits);
  request.score_only = message.score_only();
  request.priority = message.priority();
  request.cache_salt = message.cache_salt();
  return request;
}

}  // namespace headrace::rpc
