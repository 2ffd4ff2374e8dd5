// Answers of models, split into content, reasoning and calls of tools: the same whatever pieces they come in.
#include "openai/message_parser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "openai/call_format.h"
#include "openai/fields.h"
#include "openai/message_format.h"

namespace headrace::openai {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::StartsWith;

/// A message as a line: "content|reasoning|name{arguments} name{arguments}|whole".
struct Message {
  std::string content, reasoning;
  std::vector<ToolCallDelta> calls;
  bool is_whole = false;

  void add(const MessageDelta& delta) {
    content += delta.content;
    reasoning += delta.reasoning;
    for (const ToolCallDelta& part : delta.tool_calls) {
      const auto index = static_cast<size_t>(part.index);
      if (index == calls.size()) {
        EXPECT_FALSE(part.id.empty());
        EXPECT_FALSE(part.name.empty());
        calls.push_back(part);
      } else {
        ASSERT_EQ(index + 1, calls.size()) << "calls come one after the other";
        EXPECT_EQ(part.id + part.name, "");
        calls.back().arguments += part.arguments;
      }
    }
  }
  [[nodiscard]] std::string line() const {
    std::string text = content + "|" + reasoning + "|";
    for (const ToolCallDelta& call : calls) text += (text.back() == '|' ? "" : " ") + call.name + call.arguments;
    if (calls.empty()) return text;
    return text + (is_whole ? "|whole" : "|");
  }
};

MessageShape shape_of(const CallFormat* calls, bool reasons = false, bool in_reasoning = false) {
  MessageShape shape;
  shape.calls = calls;
  shape.tools = {"f", "get_weather"};
  shape.reasons = reasons;
  shape.in_reasoning = in_reasoning;
  return shape;
}

template <class Cuts>
Message parse(const MessageShape& shape, std::string_view text, const Cuts& cuts) {
  const std::unique_ptr<MessageParser> parser = make_message_parser(shape);
  Message message;
  size_t from = 0;
  for (const size_t cut : cuts) {
    message.add(parser->feed(text.substr(from, cut - from)));
    from = cut;
  }
  message.add(parser->feed(text.substr(from)));
  message.add(parser->finish());
  message.is_whole = parser->has_whole_tool_calls();
  return message;
}

/// The line of `text`, which must not depend on how it is cut.
std::string line_of(const MessageShape& shape, std::string_view text) {
  const std::string whole = parse(shape, text, std::vector<size_t>{}).line();
  std::vector<size_t> bytes;
  for (size_t i = 1; i < text.size(); ++i) {
    bytes.push_back(i);
    EXPECT_EQ(parse(shape, text, std::vector<size_t>{i}).line(), whole) << "cut at " << i;
  }
  EXPECT_EQ(parse(shape, text, bytes).line(), whole) << "byte by byte";
  std::mt19937 random(static_cast<uint32_t>(text.size()));
  for (int round = 0; round < 20; ++round) {
    std::vector<size_t> cuts;
    for (const size_t i : bytes) {
      if (random() % 4 == 0) cuts.push_back(i);
    }
    EXPECT_EQ(parse(shape, text, cuts).line(), whole) << "random pieces, round " << round;
  }
  return whole;
}

TEST(HermesMessages, CallsAreTakenOutOfTheText) {
  const MessageShape shape = shape_of(&hermes_calls());
  EXPECT_EQ(line_of(shape, "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": \"}<\\\"\"}}\n</tool_call>"),
            "||f{\"a\": \"}<\\\"\"}|whole");
  EXPECT_EQ(line_of(shape,
                    "I look.\n\n<tool_call>{\"name\":\"f\",\"arguments\":{}}</tool_call>\n"
                    "<tool_call>{\"arguments\":{\"x\":[1,{}]},\"id\":7,\"name\":\"get_weather\"}</tool_call>\n"),
            "I look.||f{} get_weather{\"x\":[1,{}]}|whole");
  EXPECT_EQ(line_of(shape, "<tool_call>{\"name\":\"f\"}</tool_call> and more"), " and more||f{}|whole");
  EXPECT_EQ(line_of(shape, "a <tool_calls <<tool_ b"), "a <tool_calls <<tool_ b||");
  EXPECT_EQ(line_of(shape, "  grö\xC3\x9F\x65r  "), "  größer  ||");
}

TEST(HermesMessages, WhatIsNoCallIsContent) {
  const MessageShape shape = shape_of(&hermes_calls());
  for (const char* text :
       {"<tool_call>nothing</tool_call>", "<tool_call>{\"name\": \"g\", \"arguments\": {}}</tool_call>",
        "<tool_call>{\"name\": 5}", "<tool_call>{\"arguments\": [1]}", "<tool_call>[{\"name\": \"f\"}]",
        "<tool_call>{\"name\"; \"f\"}"}) {
    EXPECT_EQ(line_of(shape, text), std::string(text) + "||") << text;
  }
  EXPECT_EQ(line_of(shape, "<tool_call><tool_call>{\"name\":\"f\",\"arguments\":{}}</tool_call>"),
            "<tool_call>||f{}|whole");
  EXPECT_EQ(line_of(shape, "<tool_call>{\"name\":\"f\",\"arguments\":{\"a\":]}} x"), "]}} x||f{\"a\":|")
      << "its name is out already";
  EXPECT_EQ(line_of(shape, "<tool_call>{\"name\":\"f\",\"arguments\":{a}}"), "||f{a}|") << "no JSON, so not whole";
}

TEST(HermesMessages, WhatIsCutStaysAsItIs) {
  MessageShape shape = shape_of(&hermes_calls());
  const std::string text = "<tool_call>{\"name\":\"f\",\"arguments\":{\"a\":1}}</tool_call>";
  for (size_t end = 0; end <= text.size(); ++end) {
    const std::string line = line_of(shape, std::string_view(text).substr(0, end));
    EXPECT_EQ(line.ends_with("|whole"), end >= text.find("</")) << line;
    if (end >= text.find("f\"") + 2) {
      EXPECT_THAT(line, StartsWith("||f"));
    }
  }
  EXPECT_EQ(line_of(shape, "<tool_call>{\"name\":\"f"), "<tool_call>{\"name\":\"f||");
  shape.must_call = true;
  EXPECT_EQ(line_of(shape, "<tool_call>{\"name\":\"f"), "||") << "it is known to be a call";
}

TEST(HermesMessages, PiecesGoOutAsSoonAsTheyCan) {
  const auto parser = make_message_parser(shape_of(&hermes_calls()));
  EXPECT_EQ(parser->feed("Now <").content, "Now");
  EXPECT_TRUE(parser->feed("tool_call>\n{\"name\": \"").empty());
  const MessageDelta named = parser->feed("f\"");
  ASSERT_EQ(named.tool_calls.size(), 1u);
  EXPECT_EQ(named.tool_calls[0].name, "f");
  EXPECT_THAT(named.tool_calls[0].id, MatchesRegex("call_[a-zA-Z0-9]{24}"));
  EXPECT_EQ(parser->feed(", \"arguments\": {\"a").tool_calls[0].arguments, "{\"a");
  EXPECT_EQ(parser->feed("\": 1").tool_calls[0].arguments, "\": 1");
  EXPECT_FALSE(parser->has_whole_tool_calls());
  EXPECT_EQ(parser->feed("}}").tool_calls[0].arguments, "}");
  EXPECT_TRUE(parser->has_whole_tool_calls());
}

TEST(Llama3Messages, TheAnswerIsACall) {
  const MessageShape shape = shape_of(&llama3_calls());
  EXPECT_EQ(line_of(shape, R"({"name": "f", "parameters": {"a": null}})"), R"(||f{"a": null}|whole)");
  EXPECT_EQ(line_of(shape, R"( <|python_tag|>{"name": "f", "parameters": {}}; {"name": "f", "arguments": {"b":2}})"),
            R"(||f{} f{"b":2}|whole)");
  EXPECT_EQ(line_of(shape, R"({"name": "Bob", "age": 5})"), R"({"name": "Bob", "age": 5}||)");
  EXPECT_EQ(line_of(shape, R"({"age": 5})"), R"({"age": 5}||)");
  EXPECT_EQ(line_of(shape, R"(So: {"name": "f", "parameters": {}})"), R"(So: {"name": "f", "parameters": {}}||)");
  EXPECT_EQ(line_of(shape, R"(So: <|python_tag|>{"name": "f", "parameters": {}})"), R"(So:||f{}|whole)");
  EXPECT_EQ(line_of(shape, "<|python_tag|>print(1)"), "<|python_tag|>print(1)||");
  EXPECT_EQ(line_of(shape, R"({"name": "f", "parameters": {}}; x)"), R"(; x||f{}|whole)");
}

TEST(MistralMessages, ListsAndNamedCalls) {
  const MessageShape shape = shape_of(&mistral_list_calls());
  EXPECT_EQ(line_of(shape, R"([TOOL_CALLS][{"name": "f", "arguments": {"a": 1}}, {"name":"f","arguments":{}}])"),
            R"(||f{"a": 1} f{}|whole)");
  EXPECT_EQ(line_of(shape, R"(Hm [TOOL_CALLS] [{"arguments": {"a": 1}, "name": "f", "id": "123456789"}])"),
            R"(Hm||f{"a": 1}|whole)");
  EXPECT_EQ(line_of(shape, R"([TOOL_CALLS]f{"a": "}"}[TOOL_CALLS]get_weather[ARGS]{})"),
            R"(||f{"a": "}"} get_weather{}|whole)");
  EXPECT_EQ(line_of(shape, R"([TOOL_CALLS]f[CALL_ID]123456789[ARGS]{"b":[]})"), R"(||f{"b":[]}|whole)");
  EXPECT_EQ(line_of(shape, R"([TOOL_CALLS]g{"a": 1})"), R"([TOOL_CALLS]g{"a": 1}||)");
  EXPECT_EQ(line_of(shape, R"([TOOL_CALLS]f[ARGS]{"a": 1)"), R"(||f{"a": 1|)");
  EXPECT_EQ(line_of(shape, "[TOOL_CALLS [1]"), "[TOOL_CALLS [1]||");
  const Message message = parse(shape, "[TOOL_CALLS]f{}", std::vector<size_t>{});
  EXPECT_THAT(message.calls.at(0).id, MatchesRegex("[a-zA-Z0-9]{9}")) << "the templates take no others";
}

TEST(Reasoning, ComesBeforeTheAnswer) {
  const MessageShape marked = shape_of(nullptr, true);
  EXPECT_EQ(line_of(marked, "<think>\nHm, 1 <2.\n</think>\n\nYes. "), "Yes. |Hm, 1 <2.|");
  EXPECT_EQ(line_of(marked, "<think>\n\n</think>\n\nYes"), "Yes||");
  EXPECT_EQ(line_of(marked, "Plain </think> text"), "Plain </think> text||");
  EXPECT_EQ(line_of(marked, "<thin"), "<thin||");
  EXPECT_EQ(line_of(marked, "<think> cut off </thi"), "|cut off </thi|");
  const MessageShape open = shape_of(nullptr, true, true);
  EXPECT_EQ(line_of(open, "Hm\n\nso\n</think>\n\nYes"), "Yes|Hm\n\nso|");
  EXPECT_EQ(line_of(open, "<think>Hm</think>Yes <think>no</think>"), "Yes <think>no</think>|Hm|");
  EXPECT_EQ(line_of(open, " never closed "), "|never closed|");
}

TEST(Reasoning, IsNoPlaceForCalls) {
  const MessageShape shape = shape_of(&hermes_calls(), true, true);
  const std::string call = "<tool_call>{\"name\":\"f\",\"arguments\":{}}</tool_call>";
  EXPECT_EQ(line_of(shape, "I could " + call + "\n</think>\n\n" + call), "|I could " + call + "|f{}|whole");
}

TEST(MessageParsers, LoseNothingOfRandomTexts) {
  const std::vector<std::string> pieces{"<tool_call>",
                                        "</tool_call>",
                                        "<",
                                        "{\"name\":",
                                        "\"f\"",
                                        "\"g\"",
                                        ",",
                                        "}",
                                        "{",
                                        "\"arguments\":",
                                        "[",
                                        "]",
                                        "x",
                                        " ",
                                        "\n",
                                        "[TOOL_CALLS]",
                                        "f",
                                        "[ARGS]",
                                        "<|python_tag|>",
                                        ";",
                                        "<think>",
                                        "</think>",
                                        "\\",
                                        "\"",
                                        ":"};
  std::mt19937 random(7);
  for (int round = 0; round < 150; ++round) {
    std::string text;
    for (size_t i = random() % 14; i > 0; --i) text += pieces[random() % pieces.size()];
    for (const CallFormat* format : call_formats()) {
      const std::string line = line_of(shape_of(format, round % 2 == 0, round % 4 == 0), text);
      if (text.find_first_not_of(" \n") != text.npos && text.find("think>") == text.npos) {
        EXPECT_NE(line, "||") << text;
      }
    }
  }
}

TEST(MessageFormats, AreFoundByTheTemplate) {
  const auto calls = [](std::string_view text, std::string_view name = "auto") {
    return find_message_format(text, name, "auto").calls;
  };
  EXPECT_EQ(calls("... <tool_call>\\n{\"name\": ..."), &hermes_calls());
  EXPECT_EQ(calls("{{ '<|python_tag|>' }}"), &llama3_calls());
  EXPECT_EQ(calls("[TOOL_CALLS] ["), &mistral_list_calls());
  EXPECT_EQ(calls("[TOOL_CALLS]name[ARGS]"), &mistral_named_calls());
  EXPECT_EQ(calls("[TOOL_CALLS]name[ARGS]", "mistral"), &mistral_named_calls());
  EXPECT_EQ(calls("", "mistral"), &mistral_list_calls());
  EXPECT_EQ(calls("<tool_call>", "none"), nullptr);
  EXPECT_EQ(calls("plain"), nullptr);
  EXPECT_THROW((void)calls("", "other"), Error);
  const auto reasoning = [](std::string_view text, std::string_view name = "auto") {
    return find_message_format(text, "auto", name).reasoning;
  };
  EXPECT_EQ(reasoning("content.split('</think>')"), MessageFormat::Reasoning::kMarked);
  EXPECT_EQ(reasoning("plain"), MessageFormat::Reasoning::kNone);
  EXPECT_EQ(reasoning("plain", "deepseek_r1"), MessageFormat::Reasoning::kFromStart);
  EXPECT_EQ(reasoning("</think>", "none"), MessageFormat::Reasoning::kNone);
  EXPECT_THROW((void)reasoning("", "other"), Error);
}

}  // namespace
}  // namespace headrace::openai
