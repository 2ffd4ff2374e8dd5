// Bodies of requests: what they become, and what is said of those that make no sense.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "openai/chat_request.h"
#include "openai/completion_request.h"

namespace headrace::openai {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

ChatRequest chat(const std::string& fields, const std::string& messages = R"([{"role":"user","content":"hi"}])") {
  const std::string comma = fields.empty() ? "" : ",";
  return read_chat_request(parse_body("{\"messages\":" + messages + comma + fields + "}"), {}, {});
}

CompletionRequest completion(const std::string& fields) { return read_completion_request(parse_body(fields), {}, {}); }

/// "code param: message" of what `read` throws.
template <class Read>
std::string fault(Read read) {
  try {
    read();
  } catch (const RequestError& error) {
    return error.openai_code() + " " + error.param() + ": " + error.message();
  }
  return "accepted";
}

TEST(ChatBody, FieldsBecomeParameters) {
  const ChatRequest request = chat(
      R"("temperature":0.5,"top_p":0.9,"top_k":-1,"min_p":0.1,"n":2,"seed":-3,"max_tokens":5,"max_completion_tokens":7,
         "stop":["a","b"],"stop_token_ids":[1,2],"logit_bias":{"5":-100},"logprobs":true,"top_logprobs":3,
         "presence_penalty":1,"frequency_penalty":-1,"repetition_penalty":1.5,"ignore_eos":true,"min_tokens":2,
         "stream":true,"stream_options":{"include_usage":true},"priority":-4,"cache_salt":"x","unknown":{"a":1})");
  const SamplingParams& s = request.common.sampling;
  EXPECT_FLOAT_EQ(s.temperature, 0.5f);
  EXPECT_EQ(s.top_k, 0);
  EXPECT_EQ(s.n, 2);
  EXPECT_EQ(s.seed, static_cast<uint64_t>(-3));
  EXPECT_EQ(s.max_tokens, 7) << "the newer name wins";
  EXPECT_THAT(s.stop, ElementsAre("a", "b"));
  EXPECT_THAT(s.stop_token_ids, ElementsAre(1, 2));
  EXPECT_FLOAT_EQ(s.logit_bias.at(5), -100);
  EXPECT_EQ(s.logprobs, 3);
  EXPECT_TRUE(request.common.include_usage);
  EXPECT_EQ(request.common.priority, -4);
}

TEST(ChatBody, NullIsAbsent) {
  const ChatRequest request = chat(R"("temperature":null,"stop":null,"tools":null,"response_format":null,"n":null)");
  EXPECT_FLOAT_EQ(request.common.sampling.temperature, SamplingParams{}.temperature);
  EXPECT_TRUE(request.common.sampling.stop.empty());
}

TEST(ChatBody, MessagesAreReadAsTemplatesWantThem) {
  const ChatRequest request = chat("", R"([{"role":"developer","content":""},
      {"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]},
      {"role":"assistant","content":null,"tool_calls":[{"id":"1","type":"function",
        "function":{"name":"f","arguments":"{\"x\":1}"}}]},
      {"role":"tool","tool_call_id":"1","content":"2"}])");
  const Json messages = Json::parse(request.conversation.messages);
  EXPECT_EQ(messages[0]["role"], "system");
  EXPECT_EQ(messages[1]["content"], "ab");
  EXPECT_TRUE(messages[2]["content"].is_null());
  EXPECT_EQ(messages[2]["tool_calls"][0]["function"]["arguments"]["x"], 1);
  EXPECT_EQ(messages[3]["tool_call_id"], "1");
}

TEST(ChatBody, WrongFieldsAreNamed) {
  EXPECT_THAT(fault([] { chat(R"("temperature":"warm")"); }), HasSubstr("invalid_value temperature"));
  EXPECT_THAT(fault([] { chat(R"("n":0)"); }), HasSubstr("invalid_value n: n: found 0, expected an integer from 1"));
  EXPECT_THAT(fault([] { chat(R"("n":18446744073709551615)"); }), HasSubstr("invalid_value n"));
  EXPECT_THAT(fault([] { chat(R"("stop":[1])"); }), HasSubstr("invalid_value stop"));
  EXPECT_THAT(fault([] { chat(R"("logit_bias":{"x":1})"); }), HasSubstr("invalid_value logit_bias"));
  EXPECT_THAT(fault([] { chat(R"("top_logprobs":2)"); }), HasSubstr("invalid_value top_logprobs"));
  EXPECT_THAT(fault([] { chat(R"("stream_options":{"include_usage":true})"); }), HasSubstr("stream_options"));
  EXPECT_THAT(fault([] { chat("", "[]"); }), HasSubstr("invalid_value messages"));
  EXPECT_THAT(fault([] { chat("", R"([{"role":"king","content":"x"}])"); }), HasSubstr("messages[0].role"));
  EXPECT_THAT(fault([] { chat("", R"([{"role":"user","content":[{"type":"image_url"}]}])"); }),
              HasSubstr("unsupported_parameter messages[0].content[0].type"));
  EXPECT_THAT(fault([] { chat(R"("audio":{"voice":"x"})"); }), HasSubstr("unsupported_parameter audio"));
  EXPECT_THAT(fault([] { chat(R"("tools":[5])"); }), HasSubstr("invalid_value tools[0]"));
  EXPECT_THAT(fault([] { chat(R"("tool_choice":"required")"); }), HasSubstr("invalid_value tool_choice"));
  EXPECT_THAT(fault([] { (void)parse_body("{\"a\":1,\"a\":2}"); }),
              HasSubstr("invalid_json a: the key 'a' stands twice"));
  EXPECT_THAT(fault([] { (void)parse_body("[1]"); }), HasSubstr("invalid_json"));
  EXPECT_THAT(fault([] { (void)parse_body("{\"a\":"); }), HasSubstr("invalid_json"));
  EXPECT_THAT(fault([] { (void)parse_body(std::string(5000, '[')); }), HasSubstr("more than 64 levels"));
}

TEST(ChatBody, OneThingBindsTheAnswer) {
  const auto output = [](const std::string& fields) { return chat(fields).common.sampling.structured_output; };
  EXPECT_TRUE(std::holds_alternative<std::monostate>(output(R"("response_format":{"type":"text"})")));
  EXPECT_TRUE(std::holds_alternative<JsonObjectOutput>(output(R"("response_format":{"type":"json_object"})")));
  const StructuredOutput schema =
      output(R"("response_format":{"type":"json_schema","json_schema":{"name":"n","schema":{"type":"integer"}}})");
  EXPECT_EQ(std::get<JsonSchemaOutput>(schema).schema, R"({"type":"integer"})");
  EXPECT_EQ(std::get<RegexOutput>(output(R"("structured_outputs":{"regex":"a+"})")).pattern, "a+");
  EXPECT_THAT(std::get<ChoiceOutput>(output(R"("guided_choice":["x","y"])")).choices, ElementsAre("x", "y"));
  EXPECT_THAT(fault([&] { output(R"("regex":"a","guided_choice":["x"])"); }), HasSubstr("only one of them"));
  EXPECT_THAT(fault([&] { output(R"("response_format":{"type":"json_schema"})"); }),
              HasSubstr("response_format.json_schema"));
}

TEST(CompletionBody, PromptsInAllFourForms) {
  EXPECT_EQ(std::get<std::string>(completion(R"({"prompt":"a"})").prompts.at(0)), "a");
  EXPECT_EQ(completion(R"({"prompt":["a","b"]})").prompts.size(), 2u);
  EXPECT_THAT(std::get<std::vector<int32_t>>(completion(R"({"prompt":[1,2]})").prompts.at(0)), ElementsAre(1, 2));
  EXPECT_EQ(completion(R"({"prompt":[[1],[2,3]]})").prompts.size(), 2u);
  EXPECT_THAT(fault([] { completion(R"({"prompt":[]})"); }), HasSubstr("invalid_value prompt"));
  EXPECT_THAT(fault([] { completion(R"({"prompt":[-1]})"); }), HasSubstr("invalid_value prompt"));
  EXPECT_THAT(fault([] { completion("{}"); }), HasSubstr("invalid_value prompt"));
}

TEST(CompletionBody, ScoringAndBestOf) {
  const CompletionRequest scored = completion(R"({"prompt":"a","echo":true,"logprobs":1,"max_tokens":0})");
  EXPECT_TRUE(scored.common.score_only);
  EXPECT_EQ(scored.common.sampling.prompt_logprobs, 1);
  EXPECT_EQ(completion(R"({"prompt":"a"})").common.sampling.max_tokens, 16);
  EXPECT_EQ(completion(R"({"prompt":"a","min_tokens":20})").common.sampling.max_tokens, 20);
  EXPECT_TRUE(completion(R"({"prompt":"a","n_predict":0})").common.score_only);
  EXPECT_EQ(completion(R"({"prompt":"a","n":2,"best_of":4})").common.sampling.best_of, 4);
  EXPECT_THAT(fault([] { completion(R"({"prompt":"a","n":3,"best_of":2})"); }), HasSubstr("best_of"));
  EXPECT_THAT(fault([] { completion(R"({"prompt":"a","best_of":2,"stream":true})"); }), HasSubstr("best_of"));
}

}  // namespace
}  // namespace headrace::openai
