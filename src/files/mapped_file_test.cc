#include "files/mapped_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <utility>
#include <vector>

#include "files/test_folder.h"

namespace headrace {
namespace {

using testing::HasSubstr;

TEST(MappedFile, GivesTheBytesAndSurvivesAMove) {
  const TestFolder folder;
  MappedFile file(folder.write("a.txt", "abc"));
  const std::byte* before = file.bytes().data();
  MappedFile moved(std::move(file));
  ASSERT_EQ(moved.bytes().size(), 3u);
  EXPECT_EQ(moved.bytes().data(), before);
  EXPECT_EQ(moved.bytes()[2], std::byte{'c'});
  EXPECT_EQ(moved.path(), folder.path("a.txt"));
  MappedFile other(folder.write("b.txt", "x"));
  other = std::move(moved);
  EXPECT_EQ(other.bytes().data(), before);
}

TEST(MappedFile, AnEmptyFileHasNoBytes) {
  const TestFolder folder;
  const MappedFile file(folder.write("empty", ""));
  EXPECT_TRUE(file.bytes().empty());
  file.drop_pages(file.bytes());
}

TEST(MappedFile, DroppedPagesAreReadAgain) {
  const TestFolder folder;
  const size_t page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  const MappedFile file(folder.write("big", std::string(8 * page, 'q')));
  const auto part = file.bytes().subspan(page + 5, 5 * page);
  for (const std::byte byte : file.bytes()) ASSERT_EQ(byte, std::byte{'q'});
  file.drop_pages(part);
  for (const std::byte byte : file.bytes()) ASSERT_EQ(byte, std::byte{'q'});
  const std::vector<std::byte> foreign(10);
  EXPECT_FALSE(file.contains(foreign));
  EXPECT_TRUE(file.contains(part));
  file.drop_pages(foreign);  // no effect
}

TEST(MappedFile, SaysWhatIsThereInstead) {
  const TestFolder folder;
  EXPECT_THAT(error_of([&] { MappedFile(folder.path("none")); }), HasSubstr("none: no such file"));
  EXPECT_THAT(error_of([&] { MappedFile(folder.path()); }), HasSubstr(": is a folder, expected a file"));
  ASSERT_EQ(::mkfifo(folder.path("pipe").c_str(), 0600), 0);
  EXPECT_THAT(error_of([&] { MappedFile(folder.path("pipe")); }), HasSubstr("pipe: is a pipe, expected a file"));
  EXPECT_THAT(error_of([&] { MappedFile("/dev/null"); }), HasSubstr("/dev/null: is a device"));
  try {
    MappedFile(folder.path("none"));
  } catch (const LoadError& error) {
    EXPECT_EQ(error.code(), ErrorCode::kNotFound);
  }
}

TEST(MappedFile, SaysWhyItCannotRead) {
  const TestFolder folder;
  std::filesystem::create_symlink("loop", folder.path("loop"));
  EXPECT_THAT(error_of([&] { MappedFile(folder.path("loop")); }), HasSubstr("loop: cannot be read: Too many levels"));
}

}  // namespace
}  // namespace headrace
