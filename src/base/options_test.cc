#include "base/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/options_command_line.h"
#include "base/options_nearest.h"

namespace headrace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Settings {
  bool raw = false;
  bool color = true;
  int32_t threads = 0;
  float top_p = 1.0f;
  std::string isa;
  std::string prompt;
  std::optional<uint64_t> seed;
  std::vector<std::string> stop;
  std::vector<std::string> golden;
  std::vector<int32_t> rows{1, 8};
  std::vector<double> costs{0.5};
  std::vector<std::string> numerics{"exact"};
  std::string model;
  std::vector<std::string> more;
};

CommandLine make_command(Settings& s, bool takes_more = false) {
  std::vector<Positional> positionals{{.name = "MODEL", .target = &s.model, .help = "the model"}};
  if (takes_more) positionals.push_back({.name = "MORE", .target = &s.more, .required = false, .help = "others"});
  return CommandLine(
      "headrace test", "Tests the options.", positionals,
      {{"General",
        {{.name = "raw", .target = &s.raw, .help = "no template"},
         {.name = "color", .target = &s.color, .help = "colours"},
         {.name = "threads", .letter = 't', .target = &s.threads, .range = {0, 1024}, .help = "threads"},
         {.name = "prompt", .letter = 'p', .target = &s.prompt, .help = "the prompt"}}},
       {"Sampling",
        {{.name = "top-p", .target = &s.top_p, .range = {0, 1, true}, .help = "keep the best"},
         {.name = "isa", .target = &s.isa, .choices = {"ref", "avx2"}, .default_text = "the best", .help = "kernels"},
         {.name = "seed", .target = &s.seed, .help = "the seed"},
         {.name = "stop", .target = &s.stop, .help = "ends the answer"},
         {.name = "golden", .target = &s.golden, .help = "goldens", .many = true},
         {.name = "rows", .target = &s.rows, .range = {1, 4096}, .help = "rows"},
         {.name = "costs", .target = &s.costs, .range = {0, 10}, .help = "costs"},
         {.name = "numerics", .target = &s.numerics, .choices = {"exact", "portable"}, .help = "recipes"}}}});
}

/// The message of the Error that parsing throws; "" where it throws none.
std::string error_of(const std::vector<std::string>& arguments) {
  Settings s;
  try {
    (void)make_command(s).parse(arguments);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_EQ(error.message().find('\n'), std::string::npos) << "more than one line";
    return error.message();
  }
  return "";
}

TEST(CommandLine, ReadsEveryFormOfFlag) {
  Settings s;
  const std::vector<std::string> arguments{
      "--raw",          "--no-color", "-t",      "4",          "--top-p=0.5",
      "m.gguf",         "--isa",      "avx2",    "--seed",     "18446744073709551615",
      "--stop",         "a,b",        "--stop=", "--rows",     "2,16",
      "--costs=0.25,3", "-p",         "-",       "--numerics", "portable,exact",
      "--golden",       "x",          "y",       "--golden",   "z"};
  EXPECT_EQ(make_command(s).parse(arguments), CommandLine::Outcome::kRun);
  EXPECT_TRUE(s.raw);
  EXPECT_FALSE(s.color);
  EXPECT_EQ(s.threads, 4);
  EXPECT_EQ(s.top_p, 0.5f);
  EXPECT_EQ(s.model, "m.gguf");
  EXPECT_EQ(s.isa, "avx2");
  EXPECT_EQ(s.seed, UINT64_MAX);
  EXPECT_THAT(s.stop, ElementsAre("a,b", ""));
  EXPECT_THAT(s.rows, ElementsAre(2, 16));
  EXPECT_THAT(s.costs, ElementsAre(0.25, 3));
  EXPECT_EQ(s.prompt, "-");
  EXPECT_THAT(s.numerics, ElementsAre("portable", "exact"));
  EXPECT_THAT(s.golden, ElementsAre("x", "y", "z"));
}

TEST(CommandLine, LeavesAloneWhatIsNotGivenAndMayBeReadAgain) {
  Settings s;
  const CommandLine command = make_command(s);
  const std::vector<std::string> arguments{"m", "--stop", "a"};
  (void)command.parse(arguments);
  s.top_p = 0.25f;
  (void)command.parse(arguments);
  EXPECT_EQ(s.top_p, 0.25f);
  EXPECT_THAT(s.stop, ElementsAre("a"));
  EXPECT_THAT(s.rows, ElementsAre(1, 8));
}

TEST(CommandLine, NegativeNumbersAndDoubleDashAreNoFlags) {
  Settings s;
  (void)make_command(s, true).parse(std::vector<std::string>{"-1", "--", "--raw", "-t"});
  EXPECT_EQ(s.model, "-1");
  EXPECT_THAT(s.more, ElementsAre("--raw", "-t"));
  EXPECT_FALSE(s.raw);
}

TEST(CommandLine, NamesTheNearestFlag) {
  EXPECT_THAT(error_of({"m", "--tempreture"}), HasSubstr("unknown flag --tempreture"));
  EXPECT_THAT(error_of({"m", "--top_p", "1"}), HasSubstr("did you mean --top-p?"));
  EXPECT_THAT(error_of({"m", "--thread", "1"}), HasSubstr("did you mean --threads?"));
  EXPECT_THAT(error_of({"m", "-x"}), HasSubstr("unknown flag -x"));
  EXPECT_THAT(error_of({"m", "--no-threads"}), HasSubstr("unknown flag --no-threads"));
}

TEST(CommandLine, SaysWhatIsAccepted) {
  EXPECT_EQ(error_of({"m", "--top-p", "1.5"}), "--top-p: '1.5' is not a number above 0, at most 1");
  EXPECT_EQ(error_of({"m", "--top-p=0"}), "--top-p: '0' is not a number above 0, at most 1");
  EXPECT_EQ(error_of({"m", "--top-p=nan"}), "--top-p: 'nan' is not a number above 0, at most 1");
  EXPECT_EQ(error_of({"m", "-t", "4x"}), "-t: '4x' is not an integer from 0 to 1024");
  EXPECT_EQ(error_of({"m", "-t", "99999999999"}), "-t: '99999999999' is not an integer from 0 to 1024");
  EXPECT_EQ(error_of({"m", "--isa", "avx3"}), "--isa: 'avx3' is not one of: ref, avx2");
  EXPECT_EQ(error_of({"m", "--seed", "-1"}), "--seed: '-1' is not an integer from 0 to 2^64-1");
  EXPECT_EQ(error_of({"m", "--rows", "1,,2"}), "--rows: '' is not a list of integers with commas, each from 1 to 4096");
  EXPECT_EQ(error_of({"m", "--costs", "1,11"}),
            "--costs: '11' is not a list of numbers with commas, each from 0 to 10");
  EXPECT_EQ(error_of({"m", "--numerics", "exact,fast"}),
            "--numerics: 'fast' is not made of these, with commas: exact, portable");
  EXPECT_THAT(error_of({"m", "--raw=1"}), HasSubstr("--raw takes no value: write --raw or --no-raw"));
  EXPECT_THAT(error_of({"m", "-t"}), HasSubstr("-t needs a value: an integer from 0 to 1024"));
  EXPECT_THAT(error_of({"m", "--stop", "--raw"}), HasSubstr("write --stop=--raw"));
  EXPECT_THAT(error_of({}), HasSubstr("MODEL is missing: the model"));
  EXPECT_THAT(error_of({"m", "n"}), HasSubstr("unexpected argument 'n'"));
  EXPECT_THAT(error_of({"m", "--a\nb"}), HasSubstr("--a\\x0ab"));
}

TEST(CommandLine, HelpNamesEveryOptionAlignedWithDefaults) {
  Settings s;
  const CommandLine command = make_command(s);
  EXPECT_EQ(command.parse(std::vector<std::string>{"--bad-flag", "--help"}), CommandLine::Outcome::kHelp);
  const std::string help = command.help(72);
  for (const char* text : {"Usage: headrace test [FLAGS] MODEL", "    --raw", "-t, --threads N", "--top-p X",
                           "--isa TEXT", "[default: the best]", "[default: 1,8]", "[default: on]", "-h, --help",
                           "one of: ref, avx2", "above 0, at most 1"}) {
    EXPECT_THAT(help, HasSubstr(text));
  }
  size_t column = std::string::npos;
  for (const char* word : {"no template", "colours", "the prompt", "kernels", "print this"}) {
    const size_t at = help.find(word);
    ASSERT_NE(at, std::string::npos) << word;
    const size_t here = at - (help.rfind('\n', at) + 1);
    if (column == std::string::npos) column = here;
    EXPECT_EQ(here, column) << word;
  }
  for (size_t from = 0; from < help.size();) {
    const size_t end = help.find('\n', from);
    EXPECT_LE(end - from, 72u) << help.substr(from, end - from);
    from = end + 1;
  }
}

TEST(Options, CheckNamesValueThatCameByAnotherWay) {
  Settings s;
  s.top_p = -0.5f;
  const Option option{.name = "top-p", .target = &s.top_p, .range = {0, 1, true}, .help = ""};
  EXPECT_EQ(option_key(option), "top_p");
  try {
    check_option(option, option_key(option));
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.message(), "top_p: '-0.5' is not a number above 0, at most 1");
  }
  s.top_p = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THROW(check_option(option, "top_p"), Error);
  s.top_p = 1;
  EXPECT_NO_THROW(check_option(option, "top_p"));
}

TEST(NearestName, CountsEdits) {
  EXPECT_EQ(edit_distance("", "abc"), 3u);
  EXPECT_EQ(edit_distance("abc", "acb"), 1u);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3u);
  EXPECT_EQ(edit_distance("same", "same"), 0u);
}

TEST(NearestName, PrefersStartsAndRefusesWhatIsFar) {
  const std::vector<std::string_view> names{"seed", "stop", "temperature", "top-k"};
  EXPECT_EQ(nearest_name("temp", names), "temperature");
  EXPECT_EQ(nearest_name("sede", names), "seed");
  EXPECT_EQ(nearest_name("quantise", names), "");
  EXPECT_EQ(nearest_name("", names), "");
}

}  // namespace
}  // namespace headrace
