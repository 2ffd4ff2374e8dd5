#include "files/json_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "files/test_folder.h"

namespace headrace {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

Metadata metadata_of(std::string_view text) { return metadata_from_json("c.json", parse_json("c.json", text)); }

std::string error_in(std::string_view text) {
  return error_of([&] { (void)parse_json("c.json", text); });
}

TEST(JsonFile, MetadataOfEveryKind) {
  const Metadata md = metadata_of(R"({"i": 5, "n": -5, "u": 18446744073709551615, "f": 1e6, "b": false, "s": "é",
    "null": null, "is": [1, 2], "fs": [1, 2.5], "bs": [true], "ss": ["x"], "empty": [], "mixed": [1, "x", null],
    "lists": [[1], [2, 3]], "rope_scaling": {"factor": 8.0, "deep": {"x": [1]}, "gone": null},
    "objects": [{"a": 1}, {"a": 2}], "big": 123456789012345678901234567890})");
  EXPECT_EQ(md.get_int("i"), 5);
  EXPECT_EQ(md.get_int("n"), -5);
  EXPECT_EQ(md.get_float("u"), 18446744073709551616.0);
  EXPECT_EQ(md.get_float("f"), 1e6);
  EXPECT_EQ(md.get_float("i"), 5.0);
  EXPECT_EQ(md.get_bool("b"), false);
  EXPECT_EQ(md.get_string("s"), "é");
  EXPECT_FALSE(md.has("null"));
  EXPECT_THAT(*md.get_ints("is"), ElementsAre(1, 2));
  EXPECT_THAT(*md.get_floats("fs"), ElementsAre(1.0, 2.5));
  EXPECT_THAT(*md.get_bools("bs"), ElementsAre(true));
  EXPECT_THAT(*md.get_strings("ss"), ElementsAre("x"));
  EXPECT_TRUE(md.get_strings("empty")->empty());
  EXPECT_EQ(md.list_size("mixed"), 3);
  EXPECT_EQ(md.list_size("lists"), 2);
  EXPECT_TRUE(md.has("rope_scaling"));
  EXPECT_EQ(md.require_float("rope_scaling.factor"), 8.0);
  EXPECT_THAT(*md.get_ints("rope_scaling.deep.x"), ElementsAre(1));
  EXPECT_FALSE(md.has("rope_scaling.gone"));
  EXPECT_EQ(md.get_int("objects.1.a"), 2);
  EXPECT_EQ(md.get_float("big"), 123456789012345678901234567890.0);
}

TEST(JsonFile, ReadsTheFixtures) {
  const std::string file = std::string(HR_TEST_DATA) + "/models/llama3-rope/config.json";
  const Metadata md = metadata_from_json(file, load_json(file));
  EXPECT_THAT(*md.get_strings("architectures"), ElementsAre("LlamaForCausalLM"));
  EXPECT_EQ(md.get_string("rope_scaling.rope_type"), "llama3");
  EXPECT_GT(md.require_float("rope_scaling.factor"), 1.0);
}

TEST(JsonFile, SyntaxErrorsNameFileAndByte) {
  EXPECT_THAT(error_in(R"({"a": 1,})"), StartsWith("c.json: byte 9: not JSON: "));
  EXPECT_THAT(error_in(""), StartsWith("c.json: byte 1: not JSON: "));
  EXPECT_THAT(error_in("{} x"), StartsWith("c.json: byte 4: not JSON: "));
  EXPECT_THAT(error_in("[\"\xff\"]"), StartsWith("c.json: byte 3: not JSON: "));
  EXPECT_THAT(error_in("[NaN]"), StartsWith("c.json: byte 2: not JSON: "));
  EXPECT_THAT(error_in("[1e999]"), StartsWith("c.json: byte 6: not JSON: "));
  EXPECT_THAT(error_in("\"\\ud800\""), HasSubstr("not JSON: "));
}

TEST(JsonFile, RefusesDuplicatesAndDepth) {
  EXPECT_EQ(error_in(R"({"a": 1, "a": 1})"), "c.json: a: this key occurs twice");
  EXPECT_EQ(error_of([] { (void)metadata_of(R"({"a.b": 1, "a": {"b": 2}})"); }), "c.json: a.b: this key occurs twice");
  EXPECT_NO_THROW((void)parse_json("c.json", std::string(64, '[') + std::string(64, ']')));
  EXPECT_EQ(error_in(std::string(65, '[') + std::string(65, ']')), "c.json: JSON nested more than 64 deep");
  EXPECT_EQ(error_in(std::string(5'000'000, '[')), "c.json: JSON nested more than 64 deep");
}

TEST(JsonFile, WantsAnObjectAndABoundedSize) {
  EXPECT_EQ(error_of([] { (void)metadata_of("[1]"); }), "c.json: found a JSON array, expected an object");
  const TestFolder folder;
  EXPECT_THAT(error_of([&] { (void)read_text_file(folder.write("t", "12345"), 4); }),
              HasSubstr("t: has 5 bytes, at most 4 are read"));
  EXPECT_EQ(read_text_file(folder.write("t", "1234"), 4), "1234");
}

}  // namespace
}  // namespace headrace
