#include "cluster/message.h"

#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <nlohmann/json.hpp>
#include <thread>

#include "cluster/message_fields.h"
#include "cluster/test_links.h"

namespace headrace::cluster {
namespace {

using Json = nlohmann::json;

TEST(Message, AskedAndAnswered) {
  const LinkPair pair = connected_pair();
  std::thread far([&] {
    std::vector<std::byte> payload;
    uint64_t id = 0;
    const Result<Json> request = receive_message(*pair.far, id, payload, soon());
    ASSERT_TRUE(request.ok()) << request.error().message();
    EXPECT_EQ(id, 17u);
    EXPECT_EQ(read_integer(request.value(), "layers", 0, 100), 30);
    EXPECT_TRUE(send_message(*pair.far, id, {{"name", "größer"}}, soon()).ok());
  });
  const Result<Json> answer = ask(*pair.near, 17, {{"layers", 30}}, soon());
  far.join();
  ASSERT_TRUE(answer.ok()) << answer.error().message();
  EXPECT_EQ(read_text(answer.value(), "name", 100), "größer");
}

TEST(Message, ErrorsComeBackWithCodeAndPeer) {
  const LinkPair pair = connected_pair();
  ASSERT_TRUE(
      send_message(*pair.far, 4, error_message(Error(ErrorCode::kOutOfMemory, "no room\nfor it")), soon()).ok());
  const Result<Json> answer = ask(*pair.near, 4, Json::object(), soon());
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.error().code(), ErrorCode::kOutOfMemory);
  EXPECT_EQ(answer.error().message(), cat(pair.near->peer(), ": no room\\x0afor it"));
}

TEST(Message, AnswerToAnotherRequestIsRefused) {
  const LinkPair pair = connected_pair();
  ASSERT_TRUE(send_message(*pair.far, 5, Json::object(), soon()).ok());
  EXPECT_EQ(ask(*pair.near, 4, Json::object(), soon()).error().code(), ErrorCode::kCorrupt);
}

TEST(Message, RefusesWhatIsNoMessage) {
  const std::string deep = "{\"a\":" + std::string(100, '[') + std::string(100, ']') + "}";
  for (const std::string& text : {std::string(), std::string("[]"), std::string("{"), std::string("{\"a\":1,\"a\":2}"),
                                  deep, std::string("{\"error\":3}"), std::string("{\"error\":{\"code\":\"x\"}}"),
                                  std::string("{\"a\":\"\xff\"}"), std::string("{} {}")}) {
    const Result<Json> message = parse_message("10.0.0.2:8100", bytes_of(text));
    ASSERT_FALSE(message.ok()) << text;
    EXPECT_EQ(message.error().code(), ErrorCode::kCorrupt) << text;
    EXPECT_EQ(message.error().message().find("10.0.0.2:8100: "), 0u) << message.error().message();
  }
  const LinkPair pair = connected_pair();
  ASSERT_TRUE(pair.far->send({.kind = FrameKind::kHeartbeat}, {}, soon()).ok());
  std::vector<std::byte> payload;
  uint64_t id = 0;
  EXPECT_EQ(receive_message(*pair.near, id, payload, soon()).error().code(), ErrorCode::kCorrupt);
}

TEST(Message, InvalidTextIsReplacedNotThrown) {
  const LinkPair pair = connected_pair();
  ASSERT_TRUE(send_message(*pair.near, 1, {{"name", "a\xff"}}, soon()).ok());
  std::vector<std::byte> payload;
  uint64_t id = 0;
  EXPECT_EQ(read_text(receive_message(*pair.far, id, payload, soon()).value(), "name", 9), "a\xef\xbf\xbd");
}

std::string refusal(const std::function<void()>& read) {
  try {
    read();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kCorrupt);
    return error.message();
  }
  return "taken";
}

TEST(MessageFields, NameFieldFoundAndExpected) {
  const Json object = {{"n", 7}, {"huge", std::numeric_limits<uint64_t>::max()}, {"text", "abcdef"}, {"list", {1, 2}}};
  EXPECT_EQ(refusal([&] { (void)read_integer(object, "text", 0, 9); }),
            "control message: text: found a string of 6 bytes, expected an integer from 0 to 9");
  EXPECT_EQ(refusal([&] { (void)read_integer(object, "n", 0, 6); }),
            "control message: n: found 7, expected an integer from 0 to 6");
  EXPECT_EQ(refusal([&] { (void)read_integer(object, "huge", -9, 9); }),
            "control message: huge: found 18446744073709551615, expected an integer from -9 to 9");
  EXPECT_EQ(refusal([&] { (void)read_text(object, "text", 5); }),
            "control message: text: found a string of 6 bytes, expected a text of at most 5 bytes");
  EXPECT_EQ(refusal([&] { (void)read_array(object, "list", 0, 1); }),
            "control message: list: found an array of 2, expected an array of 0 to 1 values");
  EXPECT_EQ(refusal([&] { (void)read_bool(object, "none"); }),
            "control message: none: found no such field, expected one");
  EXPECT_EQ(refusal([&] { (void)read_number(object["list"], "n", 0, 1); }),
            "control message: n: found an array of 2, expected an object that has it");
  EXPECT_EQ(refusal([&] { (void)read_object(object, "n"); }), "control message: n: found 7, expected an object");
}

}  // namespace
}  // namespace headrace::cluster
