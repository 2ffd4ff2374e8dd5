#include "openai/message_format.h"

#include <algorithm>
#include <optional>

#include "base/cat.h"
#include "base/error.h"
#include "openai/call_format.h"
#include "openai/reasoning_splitter.h"

namespace headrace::openai {
namespace {

using Choice = ToolFields::Choice;
using Reasoning = MessageFormat::Reasoning;

class SplittingParser final : public MessageParser {
 public:
  explicit SplittingParser(const MessageShape& shape) : must_call_(shape.must_call) {
    if (shape.reasons) reasoning_.emplace(shape.in_reasoning);
    if (shape.calls != nullptr) calls_ = shape.calls->make_reader(shape.tools);
  }

  [[nodiscard]] MessageDelta feed(std::string_view text) override {
    MessageDelta delta;
    if (reasoning_) {
      take(reasoning_->feed(text, delta.reasoning), delta);
    } else {
      take(text, delta);
    }
    return delta;
  }
  [[nodiscard]] MessageDelta finish() override {
    MessageDelta delta;
    if (reasoning_) take(reasoning_->finish(delta.reasoning), delta);
    if (calls_ != nullptr) calls_->finish(delta, !must_call_);
    return delta;
  }
  [[nodiscard]] bool has_whole_tool_calls() const noexcept override {
    return calls_ != nullptr && calls_->has_whole_calls();
  }

 private:
  void take(std::string_view text, MessageDelta& delta) {
    if (calls_ != nullptr) {
      calls_->feed(text, delta);
    } else {
      delta.content += text;
    }
  }

  bool must_call_;
  std::optional<ReasoningSplitter> reasoning_;
  std::unique_ptr<CallReader> calls_;
};

const CallFormat* find_calls(std::string_view chat_template, std::string_view name) {
  if (name == "none") return nullptr;
  const CallFormat* first = nullptr;
  for (const CallFormat* format : call_formats()) {
    if (name != "auto" && format->name() != name) continue;
    if (format->is_in(chat_template)) return format;
    if (first == nullptr) first = format;
  }
  if (first == nullptr) {
    throw Error(ErrorCode::kInvalidArgument,
                cat("tool_call_parser: '", printable(name), "' is not one of: auto, hermes, llama3, mistral, none"));
  }
  return name == "auto" ? nullptr : first;
}

Reasoning find_reasoning(std::string_view chat_template, std::string_view name) {
  if (name == "auto") {
    return chat_template.find(kThinkEnd) != std::string_view::npos ? Reasoning::kMarked : Reasoning::kNone;
  }
  if (name == "qwen3") return Reasoning::kMarked;
  if (name == "deepseek_r1") return Reasoning::kFromStart;
  if (name == "none") return Reasoning::kNone;
  throw Error(ErrorCode::kInvalidArgument,
              cat("reasoning_parser: '", printable(name), "' is not one of: auto, deepseek_r1, qwen3, none"));
}

/// The end of a prompt, without white space behind it.
std::string end_of_prompt(const Request& request, const Model& model) {
  constexpr size_t kTokens = 24;  // room for a mark in pieces and line breaks
  const auto& tokens = std::get<std::vector<int32_t>>(request.input);
  const size_t count = std::min(tokens.size(), kTokens);
  std::string text = model.detokenize(std::span(tokens).last(count), /*skip_special=*/false);
  while (!text.empty() && is_json_space(text.back())) text.pop_back();
  return text;
}

/// The id of a text that is one special token.
std::optional<int32_t> special_token(const Model& model, std::string_view text) {
  const std::vector<int32_t> tokens = model.tokenize(text, /*add_special=*/false, /*parse_special=*/true);
  const bool is_special = tokens.size() == 1 && model.detokenize(tokens, /*skip_special=*/true).empty();
  return is_special ? std::optional(tokens[0]) : std::nullopt;
}

void show(const Model& model, std::string_view mark, SamplingParams& sampling) {
  if (const auto token = special_token(model, mark)) sampling.shown_special_tokens.push_back(*token);
}

MessageShape shape_of(const MessageFormat& format, const ChatRequest& chat, const Model& model,
                      const Request& request) {
  MessageShape shape;
  shape.must_call = chat.tools.choice == Choice::kRequired;
  if (chat.tools.choice != Choice::kNone) {
    shape.calls = format.calls;
    for (const Tool& tool : chat.tools.tools) shape.tools.insert(tool.name);
  }
  if (format.reasoning == Reasoning::kNone) return shape;
  const std::string prompt_end = end_of_prompt(request, model);
  shape.reasons = !prompt_end.ends_with(kThinkEnd);
  shape.in_reasoning =
      shape.reasons && (prompt_end.ends_with(kThinkBegin) || format.reasoning == Reasoning::kFromStart);
  return shape;
}

/// What the compiler of grammars accepts. Agents bring more tools than that: calls that may come are then taken as the
/// model writes them.
constexpr size_t kMaxGrammarBytes = 16 * 1024;

void bind_calls(const CallFormat& calls, const ToolFields& tools, const Model& model, SamplingParams& sampling) {
  const auto write_mark = [&](std::string_view mark) {
    const std::optional<int32_t> token = special_token(model, mark);
    return token ? cat("<[", *token, "]>") : lark_text(mark);
  };
  GrammarOutput grammar{.lark = "start: " + calls.grammar(tools.tools, tools.parallel, write_mark), .origin = "tools"};
  const bool must_call = tools.choice == Choice::kRequired;
  if (!must_call && grammar.lark.size() > kMaxGrammarBytes) return;
  sampling.structured_output = std::move(grammar);
  if (must_call) return;
  CallFormat::Marks marks = calls.marks(tools.tools);
  sampling.structured_output_start.marks = std::move(marks.anywhere);
  sampling.structured_output_start.first_marks = std::move(marks.first);
}

}  // namespace

MessageFormat find_message_format(std::string_view chat_template, std::string_view tool_call_parser,
                                  std::string_view reasoning_parser) {
  return {.calls = find_calls(chat_template, tool_call_parser),
          .reasoning = find_reasoning(chat_template, reasoning_parser)};
}

std::unique_ptr<MessageParser> make_message_parser(const MessageShape& shape) {
  return std::make_unique<SplittingParser>(shape);
}

MessageParserFactory apply_message_format(const MessageFormat& format, const ChatRequest& chat, const Model& model,
                                          Request& request) {
  SamplingParams& sampling = request.sampling;
  const bool is_bound = !std::holds_alternative<std::monostate>(sampling.structured_output);
  MessageShape shape = shape_of(format, chat, model, request);
  if (shape.must_call && is_bound) {
    throw RequestError(
        "invalid_value", "tool_choice",
        "tool_choice: the answer cannot be bound to a call and to response_format or structured_outputs");
  }
  if (shape.must_call && shape.calls == nullptr) {
    throw RequestError("unsupported_parameter", "tool_choice",
                       "tool_choice: how this model calls tools is not known; name it with --tool-call-parser");
  }
  if (is_bound) shape.calls = nullptr;  // nothing but what it is bound to may come
  if (shape.calls != nullptr) {
    bind_calls(*shape.calls, chat.tools, model, sampling);
    for (const std::string& mark : shape.calls->specials()) show(model, mark, sampling);
  }
  if (shape.reasons) {
    for (const char* mark : {kThinkBegin, kThinkEnd}) show(model, mark, sampling);
    if (!std::holds_alternative<std::monostate>(sampling.structured_output)) {
      sampling.structured_output_start.reasoning_begin = kThinkBegin;
      sampling.structured_output_start.reasoning_end = kThinkEnd;
      sampling.structured_output_start.in_reasoning = shape.in_reasoning;
    }
  }
  if (shape.calls == nullptr && !shape.reasons) return {};
  return [shape = std::move(shape)] { return make_message_parser(shape); };
}

}  // namespace headrace::openai
