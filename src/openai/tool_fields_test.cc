// What bodies say about tools.
#include "openai/tool_fields.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/cat.h"

namespace headrace::openai {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

const std::string kTools =
    R"("tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{"a":{}}}}},)"
    R"({"type":"function","function":{"name":"g-2","description":"d"}}])";

ToolFields read(const std::string& fields) {
  const Json body = parse_body("{" + fields + "}");
  return read_tools(Fields(body));
}

std::string fault(const std::string& fields) {
  try {
    (void)read(fields);
  } catch (const RequestError& error) {
    return error.openai_code() + " " + error.param() + ": " + error.message();
  }
  return "accepted";
}

TEST(ToolFields, ToolsMayBeCalledUnlessTheChoiceIsNone) {
  const ToolFields fields = read(kTools);
  EXPECT_EQ(fields.choice, ToolFields::Choice::kAuto);
  EXPECT_TRUE(fields.parallel);
  ASSERT_EQ(fields.tools.size(), 2u);
  EXPECT_EQ(fields.tools[0].parameters, R"({"type":"object","properties":{"a":{}}})");
  EXPECT_EQ(fields.tools[1].parameters, R"({"type":"object"})");
  EXPECT_THAT(fields.text, StartsWith("[{\"type\":\"function\""));
  EXPECT_EQ(read(kTools + R"(,"tool_choice":"none")").text, "");
  EXPECT_EQ(read(kTools + R"(,"tool_choice":"required")").choice, ToolFields::Choice::kRequired);
  EXPECT_FALSE(read(kTools + R"(,"parallel_tool_calls":false)").parallel);
  EXPECT_EQ(read(R"("tools":[],"tool_choice":"auto")").choice, ToolFields::Choice::kNone);
}

TEST(ToolFields, ANamedOneIsTheOnlyOneAndCalledOnce) {
  const ToolFields fields = read(kTools + R"(,"tool_choice":{"type":"function","function":{"name":"g-2"}})");
  EXPECT_EQ(fields.choice, ToolFields::Choice::kRequired);
  EXPECT_FALSE(fields.parallel);
  ASSERT_EQ(fields.tools.size(), 1u);
  EXPECT_EQ(fields.tools[0].name, "g-2");
  EXPECT_THAT(fields.text, HasSubstr("\"f\"")) << "the model sees all";
}

TEST(ToolFields, OlderNamesMeanTheSame) {
  const ToolFields fields = read(R"("functions":[{"name":"f"},{"name":"g"}],"function_call":{"name":"f"})");
  EXPECT_EQ(fields.choice, ToolFields::Choice::kRequired);
  EXPECT_EQ(fields.text,
            R"([{"type":"function","function":{"name":"f"}},{"type":"function","function":{"name":"g"}}])");
  EXPECT_FALSE(read(R"("functions":[{"name":"f"}])").parallel);
}

TEST(ToolFields, FaultsNameTheirPlace) {
  EXPECT_THAT(fault(R"("tools":5)"), StartsWith("invalid_value tools"));
  EXPECT_THAT(fault(R"("tools":[{"type":"web"}])"), StartsWith("invalid_value tools[0].type"));
  EXPECT_THAT(fault(R"("tools":[{"type":"function"}])"), StartsWith("invalid_value tools[0].function"));
  for (const std::string& name : {std::string(), std::string("a b"), std::string("ä"), std::string(65, 'a')}) {
    EXPECT_THAT(fault(cat(R"("tools":[{"function":{"name":")", name, "\"}}]")),
                StartsWith("invalid_value tools[0].function.name"));
  }
  EXPECT_EQ(fault(cat(R"("tools":[{"function":{"name":")", std::string(64, 'a'), "\"}}]")), "accepted");
  EXPECT_THAT(fault(R"("tools":[{"function":{"name":"f"}},{"function":{"name":"f"}}])"),
              StartsWith("invalid_value tools[1].function.name"));
  EXPECT_THAT(fault(R"("tools":[{"function":{"name":"f","parameters":{"type":"array"}}}])"),
              StartsWith("invalid_value tools[0].function.parameters"));
  EXPECT_THAT(fault(cat(R"("tools":[{"function":{"name":"f","parameters":{"a":")", std::string(70000, 'a'), "\"}}}]")),
              StartsWith("invalid_value tools[0].function.parameters"));
  std::string many;
  for (int i = 0; i < 129; ++i) many += cat(i == 0 ? "" : ",", R"({"function":{"name":"f)", i, "\"}}");
  EXPECT_THAT(fault("\"tools\":[" + many + "]"), StartsWith("invalid_value tools"));
  EXPECT_THAT(fault(kTools + R"(,"tool_choice":{"type":"function","function":{"name":"h"}})"),
              StartsWith("invalid_value tool_choice.function.name"));
  EXPECT_THAT(fault(kTools + R"(,"tool_choice":"any")"), StartsWith("invalid_value tool_choice"));
  EXPECT_THAT(fault(R"("tool_choice":"required")"), StartsWith("invalid_value tool_choice"));
  EXPECT_THAT(fault(R"("functions":[{"name":"f"}],"function_call":{"name":"g"})"),
              StartsWith("invalid_value function_call.name"));
  EXPECT_THAT(fault(kTools + R"(,"functions":[])"), StartsWith("invalid_value functions"));
}

}  // namespace
}  // namespace headrace::openai
