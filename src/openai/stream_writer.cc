#include "openai/stream_writer.h"

#include "openai/json_text.h"

namespace headrace::openai {
namespace {

std::string chunk_head(const AnswerPlan& plan) {
  std::string head = to_text(head_json(plan.head, plan.is_chat ? "chat.completion.chunk" : "text_completion"));
  head.pop_back();
  return "data: " + head + ",\"choices\":[";
}

void append_field(std::string& out, std::string_view name, const Json& value) {
  out += ",\"";
  out += name;
  out += "\":";
  out += to_text(value);
}

}  // namespace

StreamWriter::StreamWriter(AnswerPlan plan)
    : plan_(std::move(plan)), head_(chunk_head(plan_)), prompts_(plan_.echoed.size()) {
  const size_t choices = prompts_.size() * static_cast<size_t>(plan_.common.sampling.n);
  choices_.reserve(choices);
  while (choices_.size() < choices) choices_.emplace_back(plan_.parser);
}

void StreamWriter::append_event(std::string_view json, std::string& out) {
  out += "data: ";
  out += json;
  out += "\n\n";
}

void StreamWriter::add(size_t request, GenerationEvent event, std::string& out) {
  Prompt& prompt = prompts_[request];
  prompt.usage = event.usage;
  if (!event.prompt_logprobs.empty()) prompt.logprobs = std::move(event.prompt_logprobs);
  const size_t index = request * static_cast<size_t>(plan_.common.sampling.n) + static_cast<size_t>(event.choice);
  if (plan_.is_chat) {
    add_chat(request, index, event, out);
  } else {
    add_text(request, index, event, out);
  }
  if (event.last && ++ended_ == prompts_.size()) end_stream(out);
}

void StreamWriter::begin_chunk(size_t index, std::string& out) const {
  out += head_;
  out += "{\"index\":";
  append_number(out, static_cast<int64_t>(index));
}

void StreamWriter::end_chunk(const ChunkEnd& end, const GenerationEvent& event, std::string& out) const {
  out += ",\"logprobs\":";
  out += end.logprobs;
  if (end.finish_reason.empty()) {
    out += ",\"finish_reason\":null";
  } else {
    out += ",\"finish_reason\":\"";
    out += end.finish_reason;
    out += '"';
    append_field(out, "stop_reason", stop_reason_json(event.stop_cause));
  }
  out += end.choice_fields;
  out += "}]";
  out += end.chunk_fields;
  const CommonFields& common = plan_.common;
  if (common.continuous_usage) {
    out += ",\"usage\":";
    append_total_usage(out);
  } else if (common.include_usage) {
    out += ",\"usage\":null";
  }
  if (common.timings_per_token || (common.timings && !end.finish_reason.empty())) {
    out += ",\"timings\":";
    append_timings(out, event.usage);
  }
  out += "}\n\n";
}

void StreamWriter::end_stream(std::string& out) const {
  if (plan_.common.include_usage) {
    out += head_;
    out += "],\"usage\":";
    append_total_usage(out);
    out += "}\n\n";
  }
  append_event("[DONE]", out);
}

void StreamWriter::append_total_usage(std::string& out) const {
  std::vector<Usage> usages;
  for (const Prompt& prompt : prompts_) usages.push_back(prompt.usage);
  int32_t reasoning_tokens = 0;
  for (const Choice& choice : choices_) reasoning_tokens += choice.message.reasoning_tokens();
  append_usage(out, sum_of(usages), reasoning_tokens);
}

bool StreamWriter::shows_tokens(const GenerationEvent& event) const noexcept {
  return !event.logprobs.empty() || (plan_.common.return_token_ids && !event.tokens.empty());
}

std::string StreamWriter::token_fields(const GenerationEvent& event) const {
  std::string fields;
  if (plan_.common.return_token_ids) append_field(fields, "token_ids", event.tokens);
  return fields;
}

std::string StreamWriter::prompt_fields(size_t request) const {
  std::string fields;
  if (plan_.common.return_token_ids) append_field(fields, "prompt_token_ids", plan_.prompt_tokens[request]);
  if (plan_.common.sampling.prompt_logprobs) {
    append_field(fields, "prompt_logprobs", prompt_logprobs_json(prompts_[request].logprobs, plan_.names));
  }
  return fields;
}

// ---- chats

void StreamWriter::add_chat(size_t request, size_t index, GenerationEvent& event, std::string& out) {
  Choice& choice = choices_[index];
  if (!choice.begun) {
    choice.begun = true;
    begin_chunk(index, out);
    out += ",\"delta\":{\"role\":\"assistant\",\"content\":\"\"}";
    end_chunk({.chunk_fields = event.choice == 0 ? prompt_fields(request) : std::string()}, event, out);
  }
  write_delta(index, choice.message.add(event), event, out);
  if (event.finish_reason) {
    const std::string_view reason = choice.message.finish_reason(*event.finish_reason);
    calls_tools_ = calls_tools_ || reason == kToolCalls;
    begin_chunk(index, out);
    out += ",\"delta\":{}";
    end_chunk({.finish_reason = reason == kToolCalls && plan_.old_calls ? kFunctionCall : reason}, event, out);
  }
}

void StreamWriter::write_delta(size_t index, const MessageDelta& delta, const GenerationEvent& event,
                               std::string& out) const {
  bool with_tokens = shows_tokens(event);
  const auto write = [&](const auto& write_fields) {
    begin_chunk(index, out);
    out += ",\"delta\":{";
    write_fields();
    out += '}';
    if (!std::exchange(with_tokens, false)) return end_chunk({}, event, out);
    const std::string logprobs =
        plan_.wants_logprobs() ? to_text(chat_logprobs_json(event.logprobs, plan_.names)) : "null";
    end_chunk({.logprobs = logprobs, .choice_fields = token_fields(event)}, event, out);
  };
  const auto write_text = [&](std::string_view name, std::string_view text) {
    if (text.empty()) return;
    write([&] {
      out += '"';
      out += name;
      out += "\":\"";
      append_json_text(out, text);
      out += '"';
    });
  };
  write_text("reasoning_content", delta.reasoning);
  write_text("content", delta.content);
  for (const ToolCallDelta& call : delta.tool_calls) {
    if (!plan_.old_calls) {
      write([&] { write_tool_call(call, out); });
    } else if (call.index == 0) {  // the older form knows of one call only
      write([&] {
        out += "\"function_call\":";
        write_function(call, out);
      });
    }
  }
  if (with_tokens) write([] {});
}

void StreamWriter::write_tool_call(const ToolCallDelta& call, std::string& out) const {
  out += "\"tool_calls\":[{\"index\":";
  append_number(out, call.index);
  if (!call.id.empty()) {
    out += ",\"id\":\"";
    append_json_text(out, call.id);
    out += "\",\"type\":\"function\"";
  }
  out += ",\"function\":";
  write_function(call, out);
  out += "}]";
}

void StreamWriter::write_function(const ToolCallDelta& call, std::string& out) {
  out += '{';
  if (!call.name.empty()) {
    out += "\"name\":\"";
    append_json_text(out, call.name);
    out += "\",";
  }
  out += "\"arguments\":\"";
  append_json_text(out, call.arguments);
  out += "\"}";
}

// ---- text completions

void StreamWriter::add_text(size_t request, size_t index, GenerationEvent& event, std::string& out) {
  Choice& choice = choices_[index];
  const bool is_first = !choice.begun;
  const EchoedPrompt& echoed = plan_.echoed[request];
  const bool has_echo = is_first && !echoed.text.empty();
  if (event.text.empty() && !has_echo && !shows_tokens(event) && !event.finish_reason) return;
  choice.begun = true;
  begin_chunk(index, out);
  out += ",\"text\":\"";
  if (has_echo) append_json_text(out, echoed.text);
  append_json_text(out, event.text);
  out += '"';
  std::string logprobs = "null", fields;
  if (plan_.wants_logprobs()) logprobs = text_logprobs(request, is_first, choice, event);
  if (plan_.common.return_token_ids) fields = token_fields(event);
  if (is_first) fields += prompt_fields(request);
  const std::string_view reason = event.finish_reason ? finish_reason_text(*event.finish_reason) : "";
  end_chunk({.logprobs = logprobs, .finish_reason = reason, .choice_fields = fields}, event, out);
}

std::string StreamWriter::text_logprobs(size_t request, bool is_first, Choice& choice,
                                        const GenerationEvent& event) const {
  if (!is_first) return to_text(completion_logprobs_json(event.logprobs, plan_.names, choice.text_offset));
  return to_text(first_logprobs_json(plan_.echoed[request], prompts_[request].logprobs, event.logprobs, plan_.names,
                                     choice.text_offset));
}

}  // namespace headrace::openai
