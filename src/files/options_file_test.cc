#include "files/options_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "files/test_folder.h"

namespace headrace {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;

struct Settings {
  int32_t stages = 1;
  std::vector<double> stage_ms{1};
  std::string lengths = "fixed";
  bool prefixes = true;
  std::vector<Option> options() {
    return {{.name = "stages", .target = &stages, .range = {1, 64}, .help = "stages"},
            {.name = "stage-ms", .target = &stage_ms, .help = "costs"},
            {.name = "lengths", .target = &lengths, .choices = {"fixed", "normal"}, .help = "lengths"},
            {.name = "prefixes", .target = &prefixes, .help = "prefixes"}};
  }
};

class OptionsFile : public testing::Test {
 protected:
  void read(std::string_view text) { read_options_file(folder_.write("options", text), settings_.options()); }
  std::string error_in(std::string_view text) {
    return error_of([&] { read(text); });
  }
  TestFolder folder_;
  Settings settings_;
};

TEST_F(OptionsFile, ReadsYaml) {
  read("# a pipeline\nstages: 2\nstage_ms: [1.5, 2]\nprefixes: false\n");
  EXPECT_EQ(settings_.stages, 2);
  EXPECT_THAT(settings_.stage_ms, ElementsAre(1.5, 2));
  EXPECT_FALSE(settings_.prefixes);
  EXPECT_EQ(settings_.lengths, "fixed");
}

TEST_F(OptionsFile, ReadsJson) {
  read(R"({"lengths": "normal", "stage_ms": 3, "stages": 16})");
  EXPECT_EQ(settings_.lengths, "normal");
  EXPECT_THAT(settings_.stage_ms, ElementsAre(3));
  EXPECT_EQ(settings_.stages, 16);
}

TEST_F(OptionsFile, SaysWhatIsWrongAndWhere) {
  EXPECT_THAT(error_in("stagse: 2\n"), EndsWith("options: unknown key 'stagse'; did you mean stages?"));
  EXPECT_THAT(error_in("stages: 65\n"), EndsWith("options: stages: '65' is not an integer from 1 to 64"));
  EXPECT_THAT(error_in("stages: 2\nstages: 3\n"), EndsWith("options: stages: given twice"));
  EXPECT_THAT(error_in("stages: {a: 1}\n"), EndsWith("options: stages: expected a value or a list of values"));
  EXPECT_THAT(error_in("stages: 1\nstage_ms: [1\n"), HasSubstr("options: line "));
  EXPECT_THAT(error_in("- 1\n"), EndsWith("expected lines of the form \"key: value\""));
  EXPECT_THAT(error_in(""), EndsWith("expected lines of the form \"key: value\""));
}

TEST_F(OptionsFile, ReadsListsOfGroups) {
  std::vector<Settings> entries;
  const auto read_list = [&](std::string_view text) {
    entries.clear();
    entries.reserve(8);  // options point into them
    read_options_list(folder_.write("list", text), "stages", [&] { return entries.emplace_back().options(); });
  };
  read_list("stages:\n- stages: 3\n- {lengths: normal, stage_ms: [2, 4]}\n");
  ASSERT_EQ(entries.size(), 2u);
  EXPECT_EQ(entries[0].stages, 3);
  EXPECT_EQ(entries[1].stages, 1);
  EXPECT_THAT(entries[1].stage_ms, ElementsAre(2, 4));
  const auto error = [&](std::string_view text) { return error_of([&] { read_list(text); }); };
  EXPECT_THAT(error("stages:\n- stages: 3\n- stagse: 3\n"),
              HasSubstr("stages, entry 2: unknown key 'stagse'; did you mean stages?"));
  EXPECT_THAT(error("stages:\n- stages: 99\n"), HasSubstr("stages, entry 1: stages"));
  for (const char* text : {"stages: 3\n", "stages: []\n", "- stages: 3\n", "stages:\n- stages: 3\nmore: 1\n"}) {
    EXPECT_THAT(error(text), HasSubstr("expected \"stages:\" with a list")) << text;
  }
  EXPECT_THAT(error("stages:\n- 3\n"), HasSubstr("stages, entry 1: expected lines"));
}

}  // namespace
}  // namespace headrace
