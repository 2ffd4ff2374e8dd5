#include "server/request_log.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/cat.h"
#include "server/line_text.h"

namespace headrace::server {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;

/// A pipe whose reading end the test holds.
class Pipe {
 public:
  Pipe() { EXPECT_EQ(pipe2(ends_, O_CLOEXEC), 0); }
  ~Pipe() {
    close(ends_[0]);
    close(ends_[1]);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  [[nodiscard]] int writing_end() const { return ends_[1]; }
  /// What was written, line by line, once the log has gone.
  std::vector<std::string> lines() {
    fcntl(ends_[0], F_SETFL, O_NONBLOCK);
    std::string text;
    char buffer[65536];
    for (ssize_t n = 0; (n = read(ends_[0], buffer, sizeof buffer)) > 0;) text.append(buffer, static_cast<size_t>(n));
    std::vector<std::string> lines;
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) lines.push_back(line);
    return lines;
  }

 private:
  int ends_[2] = {-1, -1};
};

const RequestLine kGeneration{.request_id = "req-1",
                              .caller = "alice",
                              .endpoint = "/v1/chat/completions",
                              .status = 200,
                              .outcome = "length",
                              .stream = true,
                              .prompt_tokens = 12,
                              .cached_tokens = 8,
                              .completion_tokens = 5,
                              .queue_seconds = 0.25,
                              .first_token_seconds = 0.5,
                              .total_seconds = 1.75};

TEST(RequestLog, TextLines) {
  Pipe pipe;
  {
    RequestLog log(RequestLog::Format::kText, true, pipe.writing_end());
    log.note("ready after 2.1 s");
    log.plain_request("req-0", "", "GET", "/v1/models", 200, 0.001);
    log.generation(kGeneration);
  }
  const std::string stamp = "[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\\.[0-9]{3}Z ";
  EXPECT_THAT(pipe.lines(),
              ElementsAre(MatchesRegex(stamp + "note text=\"ready after 2.1 s\""),
                          MatchesRegex(stamp + "request id=req-0 caller=- method=GET path=/v1/models status=200 "
                                               "total_s=0.001000"),
                          MatchesRegex(stamp + "generation id=req-1 caller=alice endpoint=/v1/chat/completions "
                                               "status=200 outcome=length stream=true prompt_tokens=12 "
                                               "cached_tokens=8 completion_tokens=5 queue_s=0.250000 "
                                               "ttft_s=0.500000 total_s=1.750000")));
}

TEST(RequestLog, JsonLines) {
  Pipe pipe;
  { RequestLog(RequestLog::Format::kJson, true, pipe.writing_end()).generation(kGeneration); }
  const std::vector<std::string> lines = pipe.lines();
  ASSERT_EQ(lines.size(), 1u);
  json line = json::parse(lines[0]);
  EXPECT_TRUE(line["time"].is_string());
  line.erase("time");
  EXPECT_EQ(line, json::parse(R"({"event": "generation", "id": "req-1", "caller": "alice", "status": 200,
    "endpoint": "/v1/chat/completions", "outcome": "length", "stream": true, "prompt_tokens": 12, "cached_tokens": 8,
    "completion_tokens": 5, "queue_s": 0.25, "ttft_s": 0.5, "total_s": 1.75})"));
}

TEST(RequestLog, ClientsForgeNoLines) {
  const std::string forged =
      "/a\n2026-01-01T00:00:00.000Z request id=x status=200\r\" path=\"\\\x1b[2J\x7f\xff\xc2\x85";
  const std::string separators =
      "/\xe2\x80\xa8/\xe2\x80\xae/\xc3\xa9/\xf0\x9f\x8c\x8d";  // U+2028, U+202E, e acute, globe
  for (const auto format : {RequestLog::Format::kText, RequestLog::Format::kJson}) {
    Pipe pipe;
    {
      RequestLog log(format, true, pipe.writing_end());
      log.plain_request("id status=200", "", "GET", forged, 404, 0);
      log.plain_request("id", "", "GET", separators, 404, 0);
    }
    const std::vector<std::string> lines = pipe.lines();
    ASSERT_EQ(lines.size(), 2u);
    for (const char control : {'\r', '\x1b', '\x7f', '\xff', '\x85'}) {
      EXPECT_EQ(lines[0].find(control), std::string::npos) << static_cast<int>(control);
    }
    EXPECT_THAT(lines[1], HasSubstr("\"/\\u2028/\\u202e/\xc3\xa9/\xf0\x9f\x8c\x8d\""));
    if (format == RequestLog::Format::kJson) {
      EXPECT_EQ(json::parse(lines[0])["id"], "id status=200");
      EXPECT_EQ(json::parse(lines[1])["path"], separators);
    } else {
      EXPECT_THAT(lines[0], HasSubstr(" id=\"id status=200\" "));
      EXPECT_THAT(lines[0], HasSubstr("status=200\\u000d\\\" path=\\\"\\\\\\u001b"));
    }
  }
  EXPECT_EQ(quoted(std::string(1000, 'x'), 10), "\"xxxxxxxxxx...\"");
  EXPECT_EQ(plain_or_quoted("a=b"), "\"a=b\"");
  EXPECT_EQ(plain_or_quoted(""), "-");
}

TEST(RequestLog, WithoutRequestsOnlyNotesAreWritten) {
  Pipe pipe;
  {
    RequestLog log(RequestLog::Format::kText, false, pipe.writing_end());
    log.plain_request("req-0", "", "GET", "/", 200, 0);
    log.generation(kGeneration);
    log.note("draining");
  }
  EXPECT_THAT(pipe.lines(), ElementsAre(HasSubstr("text=draining")));
}

TEST(RequestLog, AReaderThatStandsStillHoldsNobodyUp) {
  Pipe pipe;
  const auto begin = std::chrono::steady_clock::now();
  {
    RequestLog log(RequestLog::Format::kText, true, pipe.writing_end());
    const std::string text(200, 'x');
    for (int i = 0; i < 30'000; ++i) log.note(text);  // 7 MB: more than the pipe and the queue hold
  }
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begin;
  EXPECT_GE(passed.count(), 1.0) << "it waits a while for the reader";
  EXPECT_LT(pipe.lines().size(), 30'000u);
}

TEST(RequestLog, TellsOfDroppedLines) {
  Pipe pipe;
  std::vector<std::string> lines;
  {
    RequestLog log(RequestLog::Format::kText, true, pipe.writing_end());
    for (int i = 0; i < 30'000; ++i) log.note(std::string(200, 'x'));
    const auto add_lines = [&] {
      for (std::string& line : pipe.lines()) lines.push_back(std::move(line));
    };
    while (lines.size() < 10'000) add_lines();
    log.note("later");
    while (lines.empty() || lines.back().find("later") == std::string::npos) add_lines();
  }
  ASSERT_GE(lines.size(), 2u);
  EXPECT_THAT(lines[lines.size() - 2], MatchesRegex(".* dropped lines=[1-9][0-9]*"));
}

}  // namespace
}  // namespace headrace::server
