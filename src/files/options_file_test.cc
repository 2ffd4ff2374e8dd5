#include "files/options_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

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
  EXPECT_THAT(error_in("stagse: 2\n"), EndsWith("options:1: unknown key 'stagse'; did you mean stages?"));
  EXPECT_THAT(error_in("stages: 65\n"), EndsWith("options:1: stages: '65' is not an integer from 1 to 64"));
  EXPECT_THAT(error_in("stages: 2\nstages: 3\n"), EndsWith("options:2: stages: given twice"));
  EXPECT_THAT(error_in("stages: {a: 1}\n"), EndsWith("options:1: stages: expected a value or a list of values"));
  EXPECT_THAT(error_in("stages:\n"),
              EndsWith("options:1: stages: nothing stands after it; give a value, or leave the key out"));
  EXPECT_THAT(error_in("\nstage_ms: []\n"), HasSubstr("options:2: stage_ms: an empty list"));
  for (const char* text : {"stage_ms: [1, {a: 2}]\n", "stage_ms: [1, [2]]\n", "stage_ms: [1, ~]\n"}) {
    EXPECT_THAT(error_in(text), HasSubstr("options:1: stage_ms: expected a list of values")) << text;
  }
  EXPECT_THAT(error_in("stages: 1\nstage_ms: [1\n"), HasSubstr("options: line "));
  EXPECT_THAT(error_in("stages: 1\n\tlengths: fixed\n"), HasSubstr("options: line 2: "));
  EXPECT_THAT(error_in("stages: 1\n---\nstages: 2\n"), HasSubstr("more than one document"));
  EXPECT_THAT(error_in("- 1\n"), EndsWith("expected lines of the form \"key: value\""));
  EXPECT_THAT(error_in(""), EndsWith("expected lines of the form \"key: value\""));
}

TEST_F(OptionsFile, ReadsGroups) {
  std::vector<Settings> entries;
  Settings group;
  std::vector<std::string> names, places;
  const auto read_all = [&](std::string_view text) {
    entries.clear();
    places.clear();
    entries.reserve(8);  // options point into them
    std::vector<Option> options = settings_.options();
    options.push_back({.name = "names", .target = &names, .help = "names"});
    const std::array sections = {
        OptionsSection{.key = "more",
                       .is_list = true,
                       .add =
                           [&](const std::string& place) {
                             places.push_back(place.substr(place.rfind('/') + 1));
                             return entries.emplace_back().options();
                           }},
        OptionsSection{.key = "group", .add = [&](const std::string&) { return group.options(); }},
        OptionsSection{.key = "for_others"}};
    read_options_file(folder_.write("list", text), options, sections);
  };
  read_all(
      "stages: 4\nnames: [a, b]\nmore:\n- stages: 3\n- {lengths: normal, stage_ms: [2, 4]}\ngroup:\n  stages: 5\n"
      "for_others: {anything: 1}\n");
  EXPECT_EQ(settings_.stages, 4);
  EXPECT_THAT(names, ElementsAre("a", "b"));
  ASSERT_EQ(entries.size(), 2u);
  EXPECT_EQ(entries[0].stages, 3);
  EXPECT_EQ(entries[1].stages, 1);
  EXPECT_THAT(entries[1].stage_ms, ElementsAre(2, 4));
  EXPECT_EQ(group.stages, 5);
  EXPECT_THAT(places, ElementsAre("list:4", "list:5"));
  const auto error = [&](std::string_view text) { return error_of([&] { read_all(text); }); };
  EXPECT_THAT(error("more:\n- stages: 3\n- stagse: 3\n"),
              EndsWith("list:3: more, entry 2: unknown key 'stagse'; did you mean stages?"));
  EXPECT_THAT(error("more:\n- stages: 99\n"), HasSubstr("list:2: more, entry 1: stages: '99'"));
  EXPECT_THAT(error("group:\n  stages: 1\n  x: 1\n"),
              EndsWith("list:3: group: unknown key 'x'; there are: stages, stage_ms, lengths, prefixes"));
  EXPECT_THAT(error("group:\n  names: a\n"),
              EndsWith("list:2: group: unknown key 'names'; it stands on top of the file, outside of all groups"));
  EXPECT_THAT(error("gruop:\n  stages: 1\n"), EndsWith("list:1: unknown key 'gruop'; did you mean group?"));
  EXPECT_THAT(error("stages: 1\ngroup: 3\n"), HasSubstr("list:2: group: expected lines"));
  EXPECT_THAT(error("stages: 1\ngroup:\n"),
              EndsWith("list:2: group: nothing stands below it; give its keys, or leave it out"));
  EXPECT_THAT(error("stages: 1\nmore:\n"), HasSubstr("list:2: more: nothing stands below it"));
  EXPECT_THAT(error("names: []\n"), EndsWith("list:1: names: an empty list; give its values, or leave the key out"));
  for (const char* text : {"more: 3\n", "more: []\n", "more: {a: 1}\n"}) {
    EXPECT_THAT(error(text), HasSubstr("list:1: more: expected a list")) << text;
  }
  EXPECT_THAT(error("more:\n- 3\n"), HasSubstr("list:2: more, entry 1: expected lines"));
  EXPECT_THAT(error("more:\n-\n"), HasSubstr("list:1: more, entry 1: expected lines"));
}

TEST_F(OptionsFile, OfManyKeysOnlySomeAreShown) {
  std::vector<int64_t> values(15);
  std::vector<std::string> names;
  for (size_t i = 0; i < values.size(); ++i) names.push_back(std::string(4, static_cast<char>('a' + i)));
  std::vector<Option> options;
  for (size_t i = 0; i < values.size(); ++i) options.push_back({.name = names[i], .target = &values[i], .help = ""});
  EXPECT_THAT(
      error_of([&] { read_options_file(folder_.write("many", "x: 1\n"), options); }),
      EndsWith("; there are: aaaa, bbbb, cccc, dddd, eeee, ffff, gggg, hhhh, iiii, jjjj, kkkk, llll and 3 more"));
}

}  // namespace
}  // namespace headrace
