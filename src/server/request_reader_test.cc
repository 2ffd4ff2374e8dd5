#include "server/request_reader.h"

#include <gtest/gtest.h>

#include <random>

namespace headrace::server {
namespace {

constexpr int64_t kMaxHead = 2048, kMaxBody = 100;

// What a reader makes of bytes that come in two parts: the status of its fault, 200 for a whole request, 0 for less.
int status_of(std::string_view bytes, size_t first_part, HttpRequest* request = nullptr) {
  RequestReader reader(kMaxHead, kMaxBody);
  std::string input(bytes.substr(0, first_part));
  input.erase(0, reader.put(input));
  input += bytes.substr(first_part);
  input.erase(0, reader.put(input));
  if (reader.fault()) return reader.fault()->status;
  if (!reader.complete()) return 0;
  if (request) *request = reader.take();
  return 200;
}

// However the bytes are cut, the same comes out.
void expect_status(int status, std::string_view bytes) {
  for (size_t part = 0; part <= bytes.size(); ++part) {
    ASSERT_EQ(status_of(bytes, part), status) << part << " bytes first of\n" << bytes;
  }
}

TEST(RequestReader, GivesTheSameRequestHoweverItsBytesAreCut) {
  const std::string_view plain =
      "\r\nPOST /a%2Fb%20c?x=%20y HTTP/1.1\r\nHost: here\r\nX-One:  1 \r\nContent-Length: 5\r\n\r\nhello";
  const std::string_view chunked =
      "POST /a%2fb%20c?x=%20y HTTP/1.1\r\nHost: here\r\nX-One: 1\r\nTransfer-Encoding: Chunked\r\n\r\n"
      "2;ext=1\r\nhe\r\n3\r\nllo\r\n0\r\nX-Two: trailer\r\n\r\n";
  for (const std::string_view bytes : {plain, chunked}) {
    for (size_t part = 0; part <= bytes.size(); ++part) {
      HttpRequest request;
      ASSERT_EQ(status_of(bytes, part, &request), 200) << part;
      EXPECT_EQ(request.method, "POST");
      EXPECT_EQ(request.path, "/a/b c");
      EXPECT_EQ(request.query, "x=%20y");
      EXPECT_EQ(request.header("x-one"), "1");
      EXPECT_EQ(request.header("x-two"), "");
      EXPECT_EQ(request.body, "hello");
    }
  }
}

TEST(RequestReader, LeavesWhatComesAfterTheRequest) {
  RequestReader reader(kMaxHead, kMaxBody);
  const std::string_view first = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
  EXPECT_EQ(reader.put(std::string(first) + "GET /next"), first.size());
  EXPECT_TRUE(reader.complete());
  EXPECT_EQ(reader.put("GET /next"), 0U);
}

TEST(RequestReader, TakesTheFormsOfATarget) {
  const auto path = [](std::string target) {
    HttpRequest request;
    return status_of("GET " + target + " HTTP/1.1\r\nHost: a\r\n\r\n", 0, &request) == 200
               ? request.path + " " + request.query
               : "refused";
  };
  EXPECT_EQ(path("http://host:80/a/b?c"), "/a/b c");
  EXPECT_EQ(path("http://host?c"), "/ c");
  EXPECT_EQ(path("http://host"), "/ ");
  EXPECT_EQ(path("*"), "* ");
  EXPECT_EQ(path("/a?b?c"), "/a b?c");
  EXPECT_EQ(path("/%"), "refused");
  EXPECT_EQ(path("/%4"), "refused");
  EXPECT_EQ(path("/%4g"), "refused");
  EXPECT_EQ(path("/%00"), "refused");
}

TEST(RequestReader, RefusesWhatTwoReadersCouldUnderstandDifferently) {
  const std::string begin = "POST / HTTP/1.1\r\nHost: a\r\n";
  expect_status(400, begin + "Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd");
  expect_status(400, begin + "Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc");
  expect_status(400, begin + "Content-Length: 3, 3\r\n\r\nabc");
  expect_status(400, begin + "Content-Length: +3\r\n\r\nabc");
  expect_status(400, begin + "Content-Length: -1\r\n\r\n");
  expect_status(400, begin + "Content-Length:\r\n\r\n");
  expect_status(400, begin + "Content-Length: 99999999999999999999\r\n\r\n");
  expect_status(400, begin + "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n");
  expect_status(400, begin + "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n");
  expect_status(400, begin + "Transfer-Encoding: gzip\r\nContent-Length: 3\r\n\r\nabc");
  expect_status(400, begin + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n");
  expect_status(501, begin + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n");
  expect_status(501, begin + "Transfer-Encoding: xchunked\r\n\r\n");
  expect_status(400, "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n");
  expect_status(400, begin + "Content-Length : 3\r\n\r\nabc");
  expect_status(400, begin + "Transfer-Encoding: chunked\r\n\r\nzz\r\n");
  expect_status(400, begin + "Transfer-Encoding: chunked\r\n\r\n2\r\nabc\r\n0\r\n\r\n");
}

TEST(RequestReader, RefusesWhatIsNoRequest) {
  expect_status(400, "GET / HTTP/1.1\r\n\r\n");
  expect_status(400, "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n");
  expect_status(400, "GET / HTTP/2.0\r\nHost: a\r\n\r\n");
  expect_status(400, "GET /\r\n\r\n");
  expect_status(400, "GET / HTTP/1.1\r\nHost: a\r\nno colon\r\n\r\n");
  expect_status(400, "GET / HTTP/1.1\r\nHost: a\r\nX: a\rb\r\n\r\n");
  expect_status(400, "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 a TLS hello");
  expect_status(417, "POST / HTTP/1.1\r\nHost: a\r\nExpect: a miracle\r\n\r\n");
  expect_status(200, "GET / HTTP/1.0\r\n\r\n");
}

TEST(RequestReader, KeepsItsLimits) {
  const std::string begin = "POST / HTTP/1.1\r\nHost: a\r\n";
  expect_status(200, begin + "Content-Length: 100\r\n\r\n" + std::string(100, 'x'));
  expect_status(413, begin + "Content-Length: 101\r\n\r\n");
  expect_status(413, begin + "Transfer-Encoding: chunked\r\n\r\n65\r\n");
  expect_status(413, begin + "Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n64\r\n");
  expect_status(431, "GET /" + std::string(kMaxHead, 'x'));
  expect_status(431, begin + "X: " + std::string(kMaxHead, 'x'));
  const std::string chunks = begin + "Transfer-Encoding: chunked\r\n\r\n";
  EXPECT_EQ(status_of(chunks + "0\r\nX: " + std::string(kMaxHead, 'x'), chunks.size()), 431);
  EXPECT_EQ(status_of(chunks + "1;x=" + std::string(kMaxHead, 'x'), chunks.size()), 431);
}

TEST(RequestReader, WaitsForContinueUntilTheBodyBegins) {
  RequestReader reader(kMaxHead, kMaxBody);
  (void)reader.put("POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-Continue\r\nContent-Length: 3\r\n\r\n");
  EXPECT_TRUE(reader.waits_for_continue());
  (void)reader.put("a");
  EXPECT_FALSE(reader.waits_for_continue());
  (void)reader.put("bc");
  EXPECT_TRUE(reader.complete());
}

// Requests with some bytes changed, dropped or doubled, in parts of any length: never a crash, never more taken than
// given, never a body beyond the limit.
TEST(RequestReader, SurvivesAnyBytes) {
  const std::string_view seeds[] = {
      "POST /v1/%41?q HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nabcd\r\n0\r\nT: t\r\n\r\n",
      "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\nConnection: close\r\n\r\n0123456789",
      "GET http://h/ HTTP/1.0\r\nConnection: keep-alive\r\nX: a\r\n folded\r\n\r\n"};
  std::mt19937 random(7);
  const auto below = [&](size_t bound) { return static_cast<size_t>(random() % bound); };
  for (int round = 0; round < 20'000; ++round) {
    std::string bytes(seeds[below(3)]);
    for (size_t change = below(6); change > 0; --change) {
      const size_t at = below(bytes.size());
      switch (below(4)) {
        case 0:
          bytes[at] = static_cast<char>(random());
          break;
        case 1:
          bytes.erase(at, below(8));
          break;
        case 2:
          bytes.insert(at, bytes.substr(below(bytes.size()), below(16)));
          break;
        default:
          bytes[at] = "\r\n :0%,;"[below(8)];
          break;
      }
      if (bytes.empty()) bytes.assign(1, ' ');
    }
    RequestReader reader(kMaxHead, kMaxBody);
    std::string input;
    for (size_t at = 0; at < bytes.size() && !reader.complete() && !reader.fault();) {
      const size_t part = 1 + below(bytes.size() - at);
      input += bytes.substr(at, part);
      at += part;
      const size_t taken = reader.put(input);
      ASSERT_LE(taken, input.size());
      input.erase(0, taken);
    }
    if (reader.complete()) {
      ASSERT_LE(reader.take().body.size(), static_cast<size_t>(kMaxBody));
    }
  }
}

}  // namespace
}  // namespace headrace::server
