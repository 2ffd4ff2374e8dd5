#include "rpc/request_message.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "headrace/v1/generation.pb.h"
#include "rpc/grpc_start.h"

namespace headrace::rpc {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Request read(const v1::GenerateRequest& message, const SamplingParams& defaults = {}) {
  return read_request(message, defaults, {});
}

/// The parameter that a message is refused for; empty: it is not.
std::string refused(const v1::GenerateRequest& message) {
  try {
    const Request request = read(message);
    check_sampling_params(request.sampling);
  } catch (const ParameterError& error) {
    return error.parameter();
  } catch (const Error& error) {
    return error.message().substr(0, error.message().find(':'));
  }
  return {};
}

v1::GenerateRequest asking() {
  v1::GenerateRequest message;
  message.set_text("a");
  return message;
}

TEST(RequestMessage, WhatIsAbsentIsTheModels) {
  SamplingParams defaults{.temperature = 0.25f, .top_k = 7, .top_p = 0.5f, .min_p = 0.125f};
  defaults.ignore_eos = true;
  const Request request = read(asking(), defaults);
  EXPECT_EQ(std::get<std::string>(request.input), "a");
  EXPECT_TRUE(request.continues_text);
  EXPECT_EQ(request.sampling.temperature, 0.25f);
  EXPECT_EQ(request.sampling.top_k, 7);
  EXPECT_EQ(request.sampling.top_p, 0.5f);
  EXPECT_EQ(request.sampling.min_p, 0.125f);
  EXPECT_TRUE(request.sampling.ignore_eos);
  EXPECT_EQ(request.sampling.n, 1);
  EXPECT_FALSE(request.sampling.seed);
  EXPECT_FALSE(request.sampling.logprobs);

  v1::GenerateRequest zero = asking();
  zero.mutable_sampling()->set_temperature(0);  // given, though it is what protobuf takes for "not there" elsewhere
  zero.mutable_sampling()->set_ignore_eos(false);
  EXPECT_EQ(read(zero, defaults).sampling.temperature, 0);
  EXPECT_FALSE(read(zero, defaults).sampling.ignore_eos);
}

TEST(RequestMessage, EveryFieldArrives) {
  v1::GenerateRequest message = asking();
  message.set_score_only(true);
  message.set_priority(-3);
  message.set_cache_salt("s");
  message.set_continues_text(false);
  v1::SamplingParams& s = *message.mutable_sampling();
  s.set_typical_p(0.5f);
  s.set_repetition_penalty(1.25f);
  s.set_presence_penalty(-0.5f);
  s.set_frequency_penalty(0.75f);
  s.set_seed(std::numeric_limits<uint64_t>::max());
  (*s.mutable_logit_bias())[5] = -2;
  s.add_allowed_token_ids(6);
  s.add_bad_words()->add_ids(7);
  s.set_n(2);
  s.set_best_of(3);
  s.set_max_tokens(4);
  s.set_min_tokens(1);
  s.add_stop(std::string("end"));
  s.add_stop_token_ids(8);
  s.set_include_stop_str_in_output(true);
  s.set_skip_special_tokens(false);
  s.add_shown_special_tokens(9);
  s.set_logprobs(2);
  s.set_prompt_logprobs(0);
  s.mutable_structured_output_start()->add_marks("m");
  const Request request = read(message);
  EXPECT_TRUE(request.score_only);
  EXPECT_EQ(request.priority, -3);
  EXPECT_EQ(request.cache_salt, "s");
  EXPECT_FALSE(request.continues_text);
  const SamplingParams& p = request.sampling;
  EXPECT_EQ(p.typical_p, 0.5f);
  EXPECT_EQ(p.repetition_penalty, 1.25f);
  EXPECT_EQ(p.presence_penalty, -0.5f);
  EXPECT_EQ(p.frequency_penalty, 0.75f);
  EXPECT_EQ(p.seed, std::numeric_limits<uint64_t>::max());
  EXPECT_EQ(p.logit_bias.at(5), -2);
  EXPECT_THAT(p.allowed_token_ids, ElementsAre(6));
  EXPECT_THAT(p.bad_words, ElementsAre(ElementsAre(7)));
  EXPECT_EQ(p.n, 2);
  EXPECT_EQ(p.best_of, 3);
  EXPECT_EQ(p.max_tokens, 4);
  EXPECT_EQ(p.min_tokens, 1);
  EXPECT_THAT(p.stop, ElementsAre("end"));
  EXPECT_THAT(p.stop_token_ids, ElementsAre(8));
  EXPECT_TRUE(p.include_stop_str_in_output);
  EXPECT_FALSE(p.skip_special_tokens);
  EXPECT_THAT(p.shown_special_tokens, ElementsAre(9));
  EXPECT_EQ(p.logprobs, 2);
  EXPECT_EQ(p.prompt_logprobs, 0);
  EXPECT_THAT(p.structured_output_start.marks, ElementsAre("m"));
}

TEST(RequestMessage, PromptsOfEachKind) {
  v1::GenerateRequest tokens;
  tokens.mutable_tokens()->add_ids(3);
  tokens.mutable_tokens()->add_ids(4);
  EXPECT_THAT(std::get<std::vector<int32_t>>(read(tokens).input), ElementsAre(3, 4));
  v1::GenerateRequest chat;
  v1::Message& m = *chat.mutable_conversation()->add_messages();
  m.set_role("user");
  m.set_content("hello");
  EXPECT_EQ(std::get<std::vector<Message>>(read(chat).input).at(0).content, "hello");
  EXPECT_EQ(refused({}), "prompt");
  v1::GenerateRequest silent;
  silent.mutable_conversation();
  EXPECT_EQ(refused(silent), "conversation");
}

TEST(RequestMessage, StructuresOfEachKind) {
  const auto read_structure = [](auto set) {
    v1::GenerateRequest message = asking();
    set(*message.mutable_sampling()->mutable_structured_output());
    return read(message).sampling.structured_output;
  };
  EXPECT_EQ(std::get<JsonSchemaOutput>(read_structure([](auto& s) { s.set_json_schema("{}"); })).schema, "{}");
  EXPECT_TRUE(std::holds_alternative<JsonObjectOutput>(read_structure([](auto& s) { s.set_json_object(true); })));
  EXPECT_TRUE(std::holds_alternative<std::monostate>(read_structure([](auto& s) { s.set_json_object(false); })));
  EXPECT_EQ(std::get<RegexOutput>(read_structure([](auto& s) { s.set_regex("a+"); })).pattern, "a+");
  EXPECT_THAT(std::get<ChoiceOutput>(read_structure([](auto& s) { s.mutable_choice()->add_texts("y"); })).choices,
              ElementsAre("y"));
  EXPECT_EQ(std::get<GrammarOutput>(read_structure([](auto& s) { s.set_grammar("start: /a/"); })).lark, "start: /a/");
  EXPECT_EQ(std::get<StructuralTagOutput>(read_structure([](auto& s) { s.set_structural_tag("{}"); })).tag, "{}");
}

TEST(RequestMessage, WhatIsOutOfBoundsIsNamed) {
  const auto refused_for = [](auto set) {
    v1::GenerateRequest message = asking();
    set(*message.mutable_sampling());
    return refused(message);
  };
  EXPECT_EQ(refused_for([](auto& s) { s.set_n(-1); }), "n");
  EXPECT_EQ(refused_for([](auto& s) { s.set_n(0); }), "n");
  EXPECT_EQ(refused_for([](auto& s) { s.set_n(129); }), "n");
  EXPECT_EQ(refused_for([](auto& s) { s.set_best_of(1000); }), "best_of");
  EXPECT_EQ(refused_for([](auto& s) { s.set_logprobs(21); }), "logprobs");
  EXPECT_EQ(refused_for([](auto& s) { s.set_prompt_logprobs(-1); }), "prompt_logprobs");
  EXPECT_EQ(refused_for([](auto& s) { s.add_stop(std::string()); }), "stop");
  EXPECT_EQ(refused_for([](auto& s) { s.add_stop(std::string(5000, 'x')); }), "stop");
  EXPECT_EQ(refused_for([](auto& s) {
              for (int i = 0; i < 65; ++i) s.add_stop(std::string(1, 'x'));
            }),
            "stop");
  EXPECT_EQ(refused_for([](auto& s) {
              for (int i = 0; i < 65; ++i) s.add_stop_token_ids(i);
            }),
            "stop_token_ids");
  EXPECT_EQ(refused_for([](auto& s) {
              for (int i = 0; i < 1025; ++i) (*s.mutable_logit_bias())[i] = 1;
            }),
            "logit_bias");
  // Left to check_sampling_params, by every way in.
  EXPECT_EQ(refused_for([](auto& s) { s.set_temperature(-1); }), "temperature");
  EXPECT_EQ(refused_for([](auto& s) { s.set_temperature(NAN); }), "temperature");
  EXPECT_EQ(refused_for([](auto& s) { s.set_top_p(INFINITY); }), "top_p");
  EXPECT_EQ(refused_for([](auto& s) { s.set_top_k(-2); }), "top_k");
  EXPECT_EQ(refused_for([](auto& s) { s.set_max_tokens(-1); }), "max_tokens");
  EXPECT_EQ(refused_for([](auto& s) { s.set_min_tokens(-1); }), "min_tokens");
}

TEST(RequestMessage, BytesThatAreNone) {
  start_grpc();
  const std::string good = asking().SerializeAsString();
  EXPECT_EQ(parse_request(good).text(), "a");
  EXPECT_THROW((void)parse_request("\x0a\x02\xff\xfe"), Error);  // a text that is not UTF-8
  EXPECT_THROW((void)parse_request("\x0a\x7f"), Error);          // ends early
  EXPECT_THROW((void)parse_request("nonsense"), Error);
  // Whatever comes: read, or refused with an Error.
  uint32_t state = 1;
  for (int i = 0; i < 2000; ++i) {
    std::string bytes = good;
    bytes.append("\x2a\x05\x0d\x00\x00\x80\x3f", 7);
    for (int flips = 0; flips < 4; ++flips) {
      state = state * 1664525 + 1013904223;
      bytes[(state >> 8) % bytes.size()] = static_cast<char>(state >> 24);
    }
    try {
      (void)read(parse_request(bytes));
    } catch (const Error&) {
    }
  }
}

}  // namespace
}  // namespace headrace::rpc
