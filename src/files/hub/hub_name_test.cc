#include "files/hub/hub_name.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "files/test_folder.h"

namespace headrace {
namespace {

using testing::HasSubstr;

TEST(HubName, Forms) {
  const HubName plain = parse_hub_name("hf:Org-1/My.Model_2");
  EXPECT_EQ(plain.repo, "Org-1/My.Model_2");
  EXPECT_EQ(plain.revision, "main");
  EXPECT_EQ(plain.file, "");
  EXPECT_EQ(plain.argument, "hf:Org-1/My.Model_2");
  const HubName full = parse_hub_name("hf:o/m@refs/pr/1:sub/a@b:c.gguf");
  EXPECT_EQ(full.repo, "o/m");
  EXPECT_EQ(full.revision, "refs/pr/1");
  EXPECT_EQ(full.file, "sub/a@b:c.gguf");
}

TEST(HubName, WhatIsNone) {
  for (const char* name : {"hf:", "hf:model", "hf:/m", "hf:o/", "hf:o/m/x", "hf:../m", "hf:o/..", "hf:.o/m", "hf:o/-m",
                           "hf:o--x/m", "hf:o/m--x", "hf:o/m..x", "hf:o/m?x", "hf:o/m x", "hf:o/\xc3\xa9"}) {
    EXPECT_THAT(error_of([&] { (void)parse_hub_name(name); }), HasSubstr("is no name of a model on the hub")) << name;
  }
  for (const char* name : {"hf:o/m@", "hf:o/m@../x", "hf:o/m@/x", "hf:o/m@-x", "hf:o/m@a b", "hf:o/m@a//b"}) {
    EXPECT_THAT(error_of([&] { (void)parse_hub_name(name); }), HasSubstr("REVISION is no branch, tag or commit"))
        << name;
  }
  for (const char* name : {"hf:o/m:", "hf:o/m:/x.gguf", "hf:o/m:../x.gguf", "hf:o/m@main:a\nb"}) {
    EXPECT_THAT(error_of([&] { (void)parse_hub_name(name); }), HasSubstr("FILE is no path of a file")) << name;
  }
}

TEST(HubName, PathsThatStayInside) {
  for (const char* path : {"a", "a.gguf", "a/b/c", "..a", "a..", "a/...", "\xc3\xa9 x"}) {
    EXPECT_TRUE(is_inside_path(path)) << path;
  }
  for (const char* path :
       {"", "/", "/a", "a/", "a//b", ".", "..", "../a", "a/..", "a/../b", "./a", "a\\b", "a\tb", "a\x7f"}) {
    EXPECT_FALSE(is_inside_path(path)) << path;
  }
  EXPECT_FALSE(is_inside_path(std::string_view("a\0b", 3)));
  EXPECT_TRUE(is_inside_path(std::string(255, 'a')));
  EXPECT_FALSE(is_inside_path(std::string(256, 'a')));
}

TEST(HubName, Commits) {
  EXPECT_TRUE(is_commit(std::string(40, 'a')));
  EXPECT_FALSE(is_commit(std::string(39, 'a')));
  EXPECT_FALSE(is_commit(std::string(40, 'A')));
  EXPECT_FALSE(is_commit(std::string(40, 'g')));
}

}  // namespace
}  // namespace headrace
