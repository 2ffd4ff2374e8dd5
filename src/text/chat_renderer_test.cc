#include "text/chat_renderer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <future>
#include <vector>

#include "base/cat.h"

namespace headrace {
namespace {

using Kind = TemplateError::Kind;
using testing::HasSubstr;

std::string render(std::string_view source, std::string variables = "", std::string messages = "[]") {
  return ChatRenderer("t.jinja", source).render({.messages = std::move(messages), .variables = std::move(variables)});
}

std::string failure(std::string_view source, Kind kind, std::string variables = "") {
  try {
    return "rendered: " + render(source, std::move(variables)).substr(0, 100);
  } catch (const TemplateError& error) {
    EXPECT_EQ(error.kind(), kind) << error.message();
    EXPECT_EQ(error.code(), kind == Kind::kSyntax ? ErrorCode::kCorrupt : ErrorCode::kInvalidArgument);
    return error.message();
  }
}

TEST(ChatRenderer, GivesTheTemplateItsInput) {
  const ChatRenderer renderer("t",
                              "{{ messages[0].content }}|{{ tools is none }}|{{ documents is none }}|"
                              "{{ add_generation_prompt }}|{{ bos_token }}|{{ nothing }}");
  EXPECT_EQ(renderer.render({.messages = R"([{"content": "héllo"}])", .variables = R"({"bos_token": "<s>"})"}),
            "héllo|True|True|True|<s>|");
  EXPECT_EQ(renderer.render({.messages = R"([{}])", .tools = "[{}]", .add_generation_prompt = false}),
            "|False|True|False||");
  EXPECT_EQ(render("{{ documents[0] }}", R"({"documents": ["d"]})"), "d");
}

TEST(ChatRenderer, FollowsPython) {
  EXPECT_EQ(render("{{ [true, none, 1.5, 'a'] }}"), "[True, None, 1.5, 'a']");
  EXPECT_EQ(render("{{ '<&>' }}"), "<&>");
  EXPECT_EQ(render("{{ ' a '.strip() ~ 'b,c'.split(',')[-1] ~ 'x'.startswith('x') }}"), "acTrue");
  EXPECT_EQ(render("{% for i in [1, 2, 3] %}{% if i == 2 %}{% continue %}{% endif %}{{ i }}{% endfor %}"), "13");
  EXPECT_EQ(render("{% set ns = namespace(n=0) %}{% for i in 'ab' %}{% set ns.n = ns.n + 1 %}{% endfor %}{{ ns.n }}"),
            "2");
  EXPECT_EQ(render("{{ messages[::-1] | map(attribute='n') | join }}", "", R"([{"n": 1}, {"n": 2}])"), "21");
}

TEST(ChatRenderer, LoopsOverNoneFailAsInPython) {
  EXPECT_THAT(failure("\n{% for t in tools %}{% endfor %}", Kind::kRuntime),
              HasSubstr("t.jinja: line 2: invalid operation: none is not iterable"));
  EXPECT_EQ(render("{% for t in nothing %}x{% else %}none{% endfor %}"), "none");
  EXPECT_EQ(render("{%- for a, b in [('in', 1), ('if', 2)] if a == 'if' -%} {{ b }} {%- endfor -%}"), "2");
  EXPECT_EQ(render("{% for x in (messages if messages else [1]) %}{{ x }}{% endfor %}"), "1");
  EXPECT_EQ(render("{% for x in 1, 2 %}{{ x }}{% endfor %}{% for c in '%}in' %}{{ c }}{% endfor %}"), "12%}in");
  EXPECT_EQ(render("{% for x in [[1], [2]] recursive %}{{ loop(x) if x is iterable else x }}{% endfor %}"), "12");
  EXPECT_EQ(render("{% raw %}{% for x in y %}{% endraw %}{# {% for x in y %} #}{{ '{% for x in y %}' }}"),
            "{% for x in y %}{% for x in y %}");
  EXPECT_EQ(render("{{ {'a': {'b': 1}} }}{% for index in [1] %}{{ index }}{% endfor %}"), "{'a': {'b': 1}}1");
}

TEST(ChatRenderer, TrimsBlocks) {
  EXPECT_EQ(render("a\n  {% if true %}\nb\n  {% endif %}\nc\n"), "a\nb\nc");
  EXPECT_EQ(render("{% generation %}\nx {%- endgeneration %}y"), "xy");
}

TEST(ChatRenderer, WritesJsonAsPythonDoes) {
  const std::string value = R"({"v": {"b": [1, 1.0, 1e-05, 1e16, -0.5, true, null], "a": "é\"\\\n<'>\u0001"}})";
  EXPECT_EQ(render("{{ v | tojson }}", value),
            R"({"b": [1, 1.0, 1e-05, 1e+16, -0.5, true, null], "a": "é\"\\\n<'>\u0001"})");
  EXPECT_EQ(render("{{ v | tojson(ensure_ascii=true, sort_keys=true, separators=(',', ':')) }}", value),
            R"({"a":"\u00e9\"\\\n<'>\u0001","b":[1,1.0,1e-05,1e+16,-0.5,true,null]})");
  EXPECT_EQ(render("{{ v | tojson(indent=2) }}", R"({"v": {"a": [1, {}], "b": []}})"),
            "{\n  \"a\": [\n    1,\n    {}\n  ],\n  \"b\": []\n}");
  EXPECT_EQ(render("{{ v | tojson }}", R"({"v": 12345678901234567890})"), "12345678901234567890");
  EXPECT_EQ(render("{{ 'x' | tojson(ensure_ascii=true) }}\U0001F4A7"), "\"x\"\U0001F4A7");
  EXPECT_EQ(render("{{ v | tojson(ensure_ascii=true) }}", "{\"v\": \"\U0001F4A7\"}"), R"("\ud83d\udca7")");
  EXPECT_THAT(failure("{{ undefined_name | tojson }}", Kind::kRuntime), HasSubstr("not JSON"));
}

TEST(ChatRenderer, TellsTheTime) {
  std::tm time{};
  time.tm_year = 126;
  time.tm_mon = 0;
  time.tm_mday = 15;
  time.tm_hour = 12;
  const ChatRenderer renderer("t", "{% macro date() %}{{ strftime_now('%d %b %Y %H') }}{% endmacro %}{{ date() }}");
  EXPECT_EQ(renderer.render({.messages = "[]", .now = time}), "15 Jan 2026 12");
  EXPECT_THAT(render("{{ strftime_now('%Y') }}"), testing::MatchesRegex("20[0-9][0-9]"));
}

TEST(ChatRenderer, PassesOnWhatTheTemplateRaises) {
  EXPECT_EQ(failure("{{ raise_exception('Only user and assistant: \"x\"') }}", Kind::kRaised),
            "Only user and assistant: \"x\"");
  EXPECT_EQ(failure("{% macro m() %}{{ raise_exception('deep') }}{% endmacro %}{% for i in [1] %}{{ m() }}{% endfor %}",
                    Kind::kRaised),
            "deep");
}

TEST(ChatRenderer, SaysWhereATemplateIsWrong) {
  EXPECT_THAT(failure("a\n{% if %}", Kind::kSyntax), HasSubstr("t.jinja: line 2: "));
  EXPECT_THAT(failure("{% endfor %}", Kind::kSyntax), HasSubstr("t.jinja: line 1: "));
  EXPECT_THAT(failure("a\xff", Kind::kSyntax), HasSubstr("t.jinja: byte 1 is not UTF-8"));
  EXPECT_THAT(failure("\n{{ nothing.at.all }}", Kind::kRuntime), HasSubstr("t.jinja: line 2: undefined value"));
  EXPECT_THAT(failure("{{ 1 | no_such_filter }}", Kind::kRuntime), HasSubstr("no_such_filter"));
  EXPECT_THAT(failure("{% include '/etc/passwd' %}", Kind::kRuntime), HasSubstr("t.jinja: line 1: "));
  EXPECT_THAT(failure("", Kind::kRuntime, "{not json"), HasSubstr("variables: "));
}

std::string repeated(std::string_view text, int times) {
  std::string out;
  for (int i = 0; i < times; ++i) out += text;
  return out;
}

// Parsing, printing and freeing recurse, and a stack that overflows ends the process.
TEST(ChatRenderer, RefusesExpressionsThatNestTooDeep) {
  for (const auto& [before, step, after] :
       std::vector<std::array<std::string, 3>>{{"{{ ", "-", "1 }}"},
                                               {"{{ ", "not ", "1 }}"},
                                               {"{{ 1", " + 1", " }}"},
                                               {"{{ 1", " ~ 1", " }}"},
                                               {"{{ 1", " and 1", " }}"},
                                               {"{{ 2", "**2", " }}"},
                                               {"{{ x", ".a", " }}"},
                                               {"{{ x", "|upper", " }}"},
                                               {"{{ x", "[0]", " }}"},
                                               {"{{ x", "()", " }}"},
                                               {"{{ [1, 2", " + 1", "] }}"},
                                               {"{% if 1", " or 1", " %}{% endif %}"},
                                               {"{% if 0 %}", "{% elif 0 %}", "{% endif %}"}}) {
    EXPECT_THAT(failure(before + repeated(step, 100'000) + after, Kind::kSyntax), testing::StartsWith("t.jinja: "))
        << step;
  }
  const std::string wide = "{% set x = [" + repeated("{'a': [1 + 1, -2], 'b': not 1}, ", 1000) + "] %}{{ x | length }}";
  EXPECT_EQ(render(wide), "1000");
}

TEST(ChatRenderer, RefusesValuesThatNestTooDeepOrInThemselves) {
  const auto grown = [](std::string_view value) {
    return failure(cat("{% set n = namespace(x=[1]) %}{% for i in range(90000) %}{% set n.x = ", value,
                       " %}{% endfor %}{{ n.x }}"),
                   Kind::kRuntime);
  };
  for (const std::string_view value :
       {"[n.x]", "(n.x,)", "{'a': n.x}", "dict(a=n.x)", "n.x | batch(1)", "n.x | slice(1)", "[[n.x][0:]]"}) {
    EXPECT_THAT(grown(value), HasSubstr("t.jinja: line 1: invalid operation: a ")) << value;
  }
  EXPECT_THAT(grown("n.x | chain([i])"), HasSubstr("allowance"));
  EXPECT_EQ(grown("n.x[0:]"), "rendered: [1]");
  EXPECT_THAT(failure("{% set x = [1] %}" + repeated("{% set x = [x] %}", 50'000), Kind::kRuntime),
              HasSubstr("nested more than"));
  for (const std::string_view member : {"n", "[n]", "namespace(a=1)", "loop", "m", "[m]"}) {
    EXPECT_THAT(
        failure(cat("{% set n = namespace() %}{% macro m() %}{{ n }}{% endmacro %}{% for i in [1] %}{% set n.x = ",
                    member, " %}{% endfor %}{{ n }}"),
                Kind::kRuntime),
        HasSubstr("a namespace holds text, numbers, lists and dicts only"))
        << member;
  }
  EXPECT_THAT(
      failure("{% set n = namespace() %}{% set n.x | default(n) | list %}{% endset %}{% set n.y | zip([n]) | list "
              "%}a{% endset %}",
              Kind::kRuntime),
      HasSubstr("a namespace holds"));
}

TEST(ChatRenderer, SetsAsJinjaDoes) {
  EXPECT_EQ(render("{%- set a, b = 1, 'x=%}' -%} {%- set n = namespace(v=none) -%}{% set n.v = a if b == 'y' else b "
                   "-%} {{ n.v }}{{ a }}{{ undefined_name is defined }}{% set u = undefined_name %}{{ u is defined }}"),
            "x=%}1FalseFalse");
  EXPECT_EQ(render("{% set t | upper | replace('B', 'c=d') %}ab{% endset %}{{ t }}{% set s %}-{% endset %}{{ s }}"),
            "Ac=d-");
  EXPECT_EQ(render("{% set m = messages | selectattr('a') | map(attribute='a') %}{{ m | list }}{{ m | length }}", "",
                   R"([{"a": 1}, {"b": 2}])"),
            "[1]1");
}

TEST(ChatRenderer, BoundsWorkMemoryAndOutput) {
  const std::string endless =
      "{% for a in range(10000) %}{% for b in range(10000) %}{% set c = a * b %}{% endfor %}{% endfor %}";
  EXPECT_THAT(failure(endless, Kind::kRuntime), HasSubstr("allowance"));
  EXPECT_THAT(failure("{% set s = 'x' * 1000000000000 %}", Kind::kRuntime), HasSubstr("t.jinja"));
  const std::string doubling =
      "{% set ns = namespace(s='x') %}{% for i in range(64) %}{% set ns.s = ns.s ~ ns.s %}{% endfor %}";
  EXPECT_THAT(failure(doubling, Kind::kRuntime), HasSubstr("t.jinja"));
  EXPECT_THAT(failure("{% set s = 'x' * 10000000 %}{% for i in range(20) %}{{ s }}{% endfor %}", Kind::kRuntime),
              HasSubstr("longer than"));
  const std::string recursive = "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}";
  EXPECT_THAT(failure(recursive, Kind::kRuntime), HasSubstr("t.jinja"));
  EXPECT_THAT(failure("{{ " + std::string(100000, '(') + " }}", Kind::kSyntax), HasSubstr("t.jinja"));
  const std::string deep = std::string(100000, '[') + std::string(100000, ']');
  EXPECT_THAT(failure("", Kind::kRuntime, "{\"a\": " + deep + "}"), HasSubstr("recursion"));
}

TEST(ChatRenderer, TakesALongConversation) {
  std::string messages = "[";
  for (int i = 0; i < 2000; ++i) {
    messages += std::string(i > 0 ? "," : "") + R"({"role": "user", "content": ")" + std::string(2000, 'x') + "\"}";
  }
  const std::string rendered =
      render("{% for m in messages %}<{{ m['role'] }}>{{ m['content'] | trim }}{% endfor %}", "", messages + "]");
  EXPECT_EQ(rendered.size(), 2000u * (2000 + 6));
}

TEST(ChatRenderer, ManyThreadsAtOnce) {
  const ChatRenderer renderer("t", "{% for m in messages %}{{ m }}{% endfor %}");
  std::vector<std::future<bool>> runs;
  for (int thread = 0; thread < 4; ++thread) {
    runs.push_back(std::async(std::launch::async, [&renderer, thread] {
      const std::string text(100, static_cast<char>('a' + thread));
      for (int i = 0; i < 200; ++i) {
        if (renderer.render({.messages = "[\"" + text + "\"]"}) != text) return false;
      }
      return true;
    }));
  }
  for (std::future<bool>& run : runs) EXPECT_TRUE(run.get());
}

}  // namespace
}  // namespace headrace
