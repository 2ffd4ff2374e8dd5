#include "files/hub/http.h"

#include <gtest/gtest.h>

namespace headrace {
namespace {

TEST(Http, Origins) {
  EXPECT_EQ(origin_of("https://Hub.example/a?b"), "https://hub.example:443");
  EXPECT_EQ(origin_of("http://hub.example:8080/"), "http://hub.example:8080");
  for (const char* url : {"", "hub.example", "ftp://hub.example/", "file:///x", "http://u:p@hub.example/", "http://"}) {
    EXPECT_EQ(origin_of(url), "") << url;
  }
}

TEST(Http, Addresses) {
  EXPECT_EQ(resolve_url("https://h/a/b", "/c?d"), "https://h/c?d");
  EXPECT_EQ(resolve_url("https://h/a/b", "https://other/x"), "https://other/x");
  EXPECT_EQ(resolve_url("https://h/a/b", ""), "");
  EXPECT_EQ(url_encode("a b/\xc3\xa9%~.gguf", true), "a%20b/%C3%A9%25~.gguf");
  EXPECT_EQ(url_encode("refs/pr/1", false), "refs%2Fpr%2F1");
}

}  // namespace
}  // namespace headrace
