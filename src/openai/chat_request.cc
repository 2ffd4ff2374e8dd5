#include "openai/chat_request.h"

#include "base/cat.h"
#include "base/error.h"

namespace headrace::openai {
namespace {

/// A list of {"type": "text", "text": ...} as one text; templates expect text.
std::string join_parts(const Json& parts, const std::string& path) {
  std::string text;
  for (size_t i = 0; i < parts.size(); ++i) {
    const Fields part(parts[i], cat(path, "[", i, "]"));
    const std::string type = part.string("type").value_or("text");
    if (type == "refusal") {
      text += part.string("refusal").value_or("");
    } else if (type != "text") {
      throw RequestError(
          "unsupported_parameter", part.path("type"),
          cat(part.path("type"), ": '", printable(type), "' is not supported: this model reads text only"));
    } else {
      const std::optional<std::string> piece = part.string("text");
      if (!piece) part.refuse("text", "a string");
      text += *piece;
    }
  }
  return text;
}

/// Tool calls as templates expect them: with the arguments as an object rather than as its text.
Json tool_calls_of(const Json& calls, const std::string& path) {
  Json read = Json::array();
  for (size_t i = 0; i < calls.size(); ++i) {
    const Fields call(calls[i], cat(path, "[", i, "]"));
    const Json* function = call.object("function");
    if (function == nullptr) call.refuse("function", "an object with name and arguments");
    const Fields fields(*function, call.path("function"));
    if (!fields.string("name")) fields.refuse("name", "a string");
    Json copy = calls[i];
    const Json* arguments = fields.find("arguments");
    if (arguments != nullptr && arguments->is_string()) {
      const std::string text = arguments->get<std::string>();
      Json parsed = Json::parse(text.empty() ? "{}" : text, nullptr, false);
      if (!parsed.is_discarded()) copy["function"]["arguments"] = std::move(parsed);
    }
    read.push_back(std::move(copy));
  }
  return read;
}

Json read_message(const Json& message, const std::string& path) {
  static constexpr std::string_view kRoles[] = {"system", "developer", "user", "assistant", "tool", "function"};
  const Fields fields(message, path);
  std::optional<std::string> role = fields.choice("role", kRoles);
  if (!role) fields.refuse("role", "system, user, assistant or tool");
  if (*role == "developer") role = "system";
  Json read = {{"role", *role}};
  const Json* calls = fields.array("tool_calls");
  const Json* content = fields.find("content");
  if (content == nullptr) {
    if (calls == nullptr && *role != "assistant") fields.refuse("content", "a string or a list of parts");
    read["content"] = calls == nullptr ? Json("") : Json();
  } else if (content->is_array()) {
    read["content"] = join_parts(*content, fields.path("content"));
  } else if (content->is_string()) {
    read["content"] = *content;
  } else {
    fields.refuse("content", "a string or a list of parts");
  }
  if (calls != nullptr) read["tool_calls"] = tool_calls_of(*calls, fields.path("tool_calls"));
  for (const char* name : {"name", "tool_call_id"}) {
    if (const auto value = fields.string(name)) read[name] = *value;
  }
  for (const char* name : {"reasoning", "reasoning_content"}) {
    if (const auto value = fields.string(name)) read["reasoning_content"] = *value;
  }
  return read;
}

Json read_messages(const Fields& body) {
  const Json* messages = body.array("messages");
  if (messages == nullptr || messages->empty()) body.refuse("messages", "a list of at least one message");
  Json read = Json::array();
  for (size_t i = 0; i < messages->size(); ++i) read.push_back(read_message((*messages)[i], cat("messages[", i, "]")));
  return read;
}

}  // namespace

ChatRequest read_chat_request(const Json& json, const SamplingParams& defaults, const RequestLimits& limits) {
  const Fields body(json);
  ChatRequest request{.common = read_common(body, defaults, limits, 0), .conversation = {}, .tools = {}};
  Conversation& conversation = request.conversation;
  conversation.messages = to_text(read_messages(body));
  request.tools = read_tools(body);
  conversation.tools = request.tools.text;
  if (const Json* variables = body.object("chat_template_kwargs")) conversation.variables = to_text(*variables);
  conversation.add_generation_prompt = body.boolean("add_generation_prompt").value_or(true);
  conversation.continue_final_message = body.boolean("continue_final_message").value_or(false);
  if (conversation.continue_final_message && body.boolean("add_generation_prompt").value_or(false)) {
    body.refuse("continue_final_message", "not both this and add_generation_prompt");
  }
  if (conversation.continue_final_message) conversation.add_generation_prompt = false;
  const bool asked = body.boolean("logprobs").value_or(false);
  const std::optional<int64_t> alternatives = body.integer("top_logprobs", 0, limits.max_logprobs);
  if (alternatives.value_or(0) > 0 && !asked) body.refuse("top_logprobs", "logprobs to be true beside it");
  if (asked) request.common.sampling.logprobs = static_cast<int32_t>(alternatives.value_or(0));
  return request;
}

}  // namespace headrace::openai
