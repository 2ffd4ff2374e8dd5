// Calls of tools by a model that writes at random: what binds it must hold whatever it would like to say.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "base/cat.h"
#include "files/test_folder.h"
#include "openai/answer_json.h"
#include "openai/call_format.h"
#include "openai/message_format.h"

namespace headrace::openai {
namespace {

using ::testing::HasSubstr;

namespace fs = std::filesystem;

std::string read_file(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

/// The tiny model, with marks for two of its special tokens and a template that ends in `tail`.
class ToolCalls : public ::testing::Test {
 protected:
  static constexpr const char* kTool = R"({"type":"object","properties":{"n":{"type":"integer"},"t":{"enum":["x","y"]},
      "l":{"type":"array","maxItems":2,"items":{"type":"boolean"}}},"required":["n","t"],
      "additionalProperties":false})";

  static Model load(const std::string& tail = "", const std::string& special = "") {
    const std::string source = std::string(HR_TEST_DATA) + "/models/llama";
    LoadOptions options{.threads = 1, .chat_template = "{{ messages[-1].content }}" + tail};
    if (special.empty()) return Model::load(source, options);
    const TestFolder folder;
    for (const auto& entry : fs::directory_iterator(source)) {
      const std::string name = entry.path().filename();
      if (name.starts_with("golden")) continue;
      std::string text = read_file(entry.path());
      if (name.starts_with("tokenizer")) {
        for (size_t at = 0; (at = text.find("<|pad|>", at)) != text.npos;) text.replace(at, 7, special);
      }
      (void)folder.write(name, text);
    }
    return Model::load(folder.path(), options);
  }

  static ChatRequest chat(const std::string& fields, uint64_t seed) {
    const std::string tool = R"({"type":"function","function":{"name":")";
    return read_chat_request(
        parse_body(cat(R"({"messages":[{"role":"user","content":"go )", seed, R"("}],"seed":)", seed, ",\"tools\":[",
                       tool, "f\",\"parameters\":", kTool, "}},", tool, "get_weather\"}}],", fields, "}")),
        {}, {});
  }

  struct Message {
    std::string content, reasoning;
    std::vector<ToolCallDelta> calls;
    bool is_whole = false;
    FinishReason reason{};
    std::string text;
  };
  static Message answer(Model& model, const MessageFormat& format, const ChatRequest& chat) {
    Request request{.input = model.tokenize(chat.conversation), .sampling = chat.common.sampling};
    request.continues_text = false;
    const MessageParserFactory make = apply_message_format(format, chat, model, request);
    const Answer answer = model.answer(request);
    Message message;
    message.reason = answer.choices[0].reason;
    message.text = answer.choices[0].text;
    const auto parser = make();
    std::vector<MessageDelta> deltas;
    deltas.push_back(parser->feed(message.text));
    deltas.push_back(parser->finish());
    for (const MessageDelta& delta : deltas) {
      message.content += delta.content;
      message.reasoning += delta.reasoning;
      for (const ToolCallDelta& part : delta.tool_calls) {
        if (!part.id.empty()) message.calls.push_back({.index = part.index, .id = part.id, .name = part.name});
        message.calls.back().arguments += part.arguments;
      }
    }
    message.is_whole = parser->has_whole_tool_calls();
    return message;
  }
  static void expect_fits(const Message& message) {
    std::set<std::string> ids;
    for (const ToolCallDelta& call : message.calls) {
      EXPECT_TRUE(ids.insert(call.id).second);
      const Json arguments = Json::parse(call.arguments, nullptr, false);
      ASSERT_TRUE(arguments.is_object()) << message.text;
      if (call.name != "f") continue;
      EXPECT_TRUE(arguments.at("n").is_number_integer()) << message.text;
      EXPECT_TRUE(arguments.at("t") == "x" || arguments.at("t") == "y") << message.text;
      EXPECT_LE(arguments.size(), 3u) << message.text;
    }
  }
};

constexpr const char* kNamed = R"("tool_choice":{"type":"function","function":{"name":"f"}},"max_tokens":400)";

TEST_F(ToolCalls, ThatMustComeDoAndFitTheirSchema) {
  Model model = load();
  for (const CallFormat* calls : call_formats()) {
    int whole = 0;
    for (uint64_t seed = 0; seed < 50; ++seed) {
      const bool is_named = seed % 2 == 0;
      const Message message = answer(
          model, {.calls = calls},
          chat(is_named ? kNamed : R"("tool_choice":"required","parallel_tool_calls":false,"max_tokens":400)", seed));
      EXPECT_EQ(message.content, "") << message.text;
      EXPECT_LE(message.calls.size(), 1u);
      if (is_named && !message.calls.empty()) {
        EXPECT_EQ(message.calls[0].name, "f");
      }
      if (message.reason != FinishReason::kStop) continue;  // a random writer finds no end of a string
      EXPECT_TRUE(message.is_whole) << message.text;
      expect_fits(message);
      ++whole;
    }
    EXPECT_GE(whole, 8) << calls->name();
  }
}

TEST_F(ToolCalls, ThatAreCutAreNotWhole) {
  Model model = load();
  for (const CallFormat* calls : call_formats()) {
    const Message message = answer(model, {.calls = calls}, chat(R"("tool_choice":"required","max_tokens":5)", 1));
    EXPECT_EQ(message.reason, FinishReason::kLength);
    EXPECT_FALSE(message.is_whole);
    EXPECT_EQ(message.content, "");
  }
}

TEST_F(ToolCalls, ThatMayComeAreBoundFromTheirMarkOn) {
  for (const auto& [mark, calls] : {std::pair{"<tool_call>", &hermes_calls()},
                                    {"[TOOL_CALLS]", &mistral_list_calls()},
                                    {"<|python_tag|>", &llama3_calls()}}) {
    Model model = load("", mark);
    int called = 0;
    for (uint64_t seed = 0; seed < 24; ++seed) {
      const bool parallel = seed % 2 == 0;
      // Makes the model write the mark, or end.
      const Message message = answer(model, {.calls = calls},
                                     chat(cat(R"("max_tokens":400,"logit_bias":{"3":56,"2":50},"parallel_tool_calls":)",
                                              parallel ? "true" : "false"),
                                          seed));
      if (!parallel) {
        EXPECT_LE(message.calls.size(), 1u) << message.text;
      }
      EXPECT_EQ(message.content.find(mark), std::string::npos) << message.text;
      if (message.calls.empty() || message.reason != FinishReason::kStop) continue;
      EXPECT_TRUE(message.is_whole) << message.text;
      expect_fits(message);
      ++called;
    }
    EXPECT_GE(called, 3) << mark;
  }
}

TEST_F(ToolCalls, ThatDoNotComeLeaveTheTextAlone) {
  Model model = load();
  const ChatRequest with = chat(R"("max_tokens":40,"ignore_eos":true)", 3);
  const ChatRequest without = chat(R"("max_tokens":40,"ignore_eos":true,"tool_choice":"none")", 3);
  const MessageFormat format{.calls = &hermes_calls()};
  Request request{.input = model.tokenize(without.conversation), .sampling = without.common.sampling};
  request.continues_text = false;
  EXPECT_FALSE(apply_message_format(format, without, model, request));
  EXPECT_EQ(answer(model, format, with).content, model.answer(request).choices[0].text);
}

TEST_F(ToolCalls, ComeAfterTheReasoning) {
  Model model = load("<think>\n", "</think>");
  const MessageFormat format{.calls = &hermes_calls(), .reasoning = MessageFormat::Reasoning::kMarked};
  int whole = 0;
  for (uint64_t seed = 0; seed < 12; ++seed) {
    const Message message =
        answer(model, format, chat(R"("tool_choice":"required","max_tokens":400,"logit_bias":{"3":50,"2":50})", seed));
    EXPECT_EQ(message.content, "") << message.text;
    if (message.reason != FinishReason::kStop) continue;
    EXPECT_TRUE(message.is_whole) << message.text;
    EXPECT_THAT(message.text, HasSubstr("</think>"));
    expect_fits(message);
    ++whole;
  }
  EXPECT_GT(whole, 3);
}

TEST_F(ToolCalls, ReasoningMayPrecedeWhatResponseFormatBinds) {
  const std::string fields =
      R"("tool_choice":"none","max_tokens":300,"logit_bias":{"3":50,"2":50},"response_format":{"type":"json_schema",
         "json_schema":{"schema":{"enum":["yes","no"]}}})";
  for (const bool opens : {true, false}) {  // the prompt opens the reasoning, or the answer may
    Model model = load(opens ? "<think>" : "", opens ? "</think>" : "<think>");
    const MessageFormat format{.reasoning = MessageFormat::Reasoning::kMarked};
    for (uint64_t seed = 0; seed < 6; ++seed) {
      const Message message = answer(model, format, chat(fields, seed));
      if (message.reason != FinishReason::kStop) continue;
      EXPECT_TRUE(message.content == "\"yes\"" || message.content == "\"no\"") << message.text;
    }
  }
}

TEST_F(ToolCalls, FaultsAreOfTheRequest) {
  Model model = load();
  const auto fault = [&](const MessageFormat& format, const std::string& fields) -> std::string {
    try {
      (void)answer(model, format, chat(fields, 1));
    } catch (const Error& error) {
      const Json body = error_answer(error).body["error"];
      return cat(body["code"].get<std::string>(), " ", body["param"].get<std::string>());
    }
    return "accepted";
  };
  EXPECT_EQ(fault({}, R"("tool_choice":"required")"), "unsupported_parameter tool_choice");
  EXPECT_EQ(fault({.calls = &hermes_calls()}, R"("tool_choice":"required","response_format":{"type":"json_object"})"),
            "invalid_value tool_choice");
  ChatRequest bad = chat(R"("tool_choice":"required")", 1);
  bad.tools.tools[0].parameters = R"({"type":"object","properties":{"a":{"type":"colour"}}})";
  try {
    (void)answer(model, {.calls = &hermes_calls()}, bad);
    ADD_FAILURE() << "accepted";
  } catch (const Error& error) {
    const ErrorAnswer told = error_answer(error);
    EXPECT_EQ(told.status, 400);
    EXPECT_EQ(told.body["error"]["code"], "invalid_schema");
    EXPECT_EQ(told.body["error"]["param"], "tools");
  }
}

}  // namespace
}  // namespace headrace::openai
