#include "files/hub/file_digest.h"

#include <gtest/gtest.h>

#include <string>

namespace headrace {
namespace {

TEST(FileDigest, KnownAnswers) {
  FileDigest sha(DigestKind::kSha256, 3);  // FIPS 180-4's example
  sha.add("a");
  sha.add("bc");
  EXPECT_EQ(sha.hex(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  FileDigest git(DigestKind::kGitBlob, 6);  // echo hello | git hash-object --stdin
  git.add("hello\n");
  EXPECT_EQ(git.hex(), "ce013625030ba8dba906f756967f9e9ca394464a");
}

TEST(FileDigest, KindsByForm) {
  EXPECT_EQ(digest_kind(std::string(64, 'a')), DigestKind::kSha256);
  EXPECT_EQ(digest_kind(std::string(40, '0')), DigestKind::kGitBlob);
  for (const std::string& etag : {std::string(), std::string(32, 'a'), std::string(64, 'A'), std::string(40, 'x')}) {
    EXPECT_FALSE(digest_kind(etag)) << etag;
  }
}

}  // namespace
}  // namespace headrace
