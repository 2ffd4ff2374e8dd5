// Malformed GGUF files: each must end in one line that names the file and the field.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "base/byte_order.h"
#include "files/gguf.h"
#include "files/gguf_format.h"
#include "files/test_folder.h"

namespace headrace {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

/// A file put together by hand, so that every field can be wrong.
class Raw {
 public:
  template <class T>
  Raw& put(T value) {
    const size_t at = bytes_.size();
    bytes_.resize(at + sizeof(T));
    store_le(bytes_.data() + at, value);
    return *this;
  }
  Raw& u32(uint32_t value) { return put(value); }
  Raw& u64(uint64_t value) { return put(value); }
  Raw& text(std::string_view value) {
    u64(value.size());
    for (const char c : value) put(c);
    return *this;
  }
  Raw& head(uint64_t tensors, uint64_t pairs) { return u32(kGgufMagic).u32(3).u64(tensors).u64(pairs); }
  Raw& key(std::string_view name, GgufType type) { return text(name).u32(static_cast<uint32_t>(type)); }
  Raw& tensor(std::string_view name, std::vector<uint64_t> file_dims, uint32_t type, uint64_t offset) {
    text(name).u32(static_cast<uint32_t>(file_dims.size()));
    for (const uint64_t dim : file_dims) u64(dim);
    return u32(type).u64(offset);
  }
  /// Padding to `alignment` and `size` bytes of data.
  Raw& data(size_t size, size_t alignment = 32) {
    bytes_.resize((bytes_.size() + alignment - 1) / alignment * alignment + size);
    return *this;
  }
  [[nodiscard]] std::string error() const {
    return error_of([&] { (void)GgufFile::parse("m.gguf", bytes_); });
  }
  [[nodiscard]] ErrorCode code() const {
    try {
      (void)GgufFile::parse("m.gguf", bytes_);
    } catch (const LoadError& error) {
      return error.code();
    }
    return ErrorCode::kInternal;
  }
  std::vector<std::byte> bytes_;
};

constexpr uint32_t kF32 = 0;
constexpr uint32_t kQ4_0 = 2;

TEST(GgufCorrupt, Head) {
  EXPECT_EQ(Raw().error(), "m.gguf: magic: needs 4 bytes at byte 0, but only 0 are left: truncated?");
  EXPECT_EQ(Raw().u32(0x04034b50).error(), "m.gguf: magic: not \"GGUF\": this is no GGUF file");
  EXPECT_EQ(Raw().u32(kGgufMagic).u32(1).error(), "m.gguf: version: found 1, expected 2 or 3");
  EXPECT_EQ(Raw().u32(kGgufMagic).u32(1).code(), ErrorCode::kUnsupported);
  EXPECT_EQ(Raw().u32(kGgufMagic).u32(4).error(), "m.gguf: version: found 4, expected 2 or 3");
  EXPECT_EQ(Raw().u32(kGgufMagic).u32(0x03000000).error(),
            "m.gguf: version: the file is big-endian, expected little-endian; convert it");
  EXPECT_EQ(Raw().u32(kGgufMagic).u32(3).u64(~uint64_t{0}).error(),
            "m.gguf: tensor count: 18446744073709551615 tensors at byte 8, more than the remaining 0 bytes can hold");
  EXPECT_THAT(Raw().head(0, uint64_t{1} << 60).error(), StartsWith("m.gguf: metadata count: 1152921504606846976"));
}

TEST(GgufCorrupt, MetadataKeys) {
  EXPECT_EQ(Raw().head(0, 1).u64(1000).u64(0).error(),
            "m.gguf: metadata pair 0: needs 1000 bytes at byte 32, but only 8 are left: truncated?");
  EXPECT_THAT(Raw().head(0, 1).u64(~uint64_t{0}).u64(0).error(), HasSubstr("needs 18446744073709551615 bytes"));
  EXPECT_EQ(Raw().head(0, 1).key("", GgufType::kUint8).put('x').error(), "m.gguf: metadata pair 0: has an empty name");
  EXPECT_THAT(Raw().head(0, 1).key(std::string(70000, 'k'), GgufType::kUint8).put('x').error(),
              HasSubstr("has a name of 70000 bytes, at most 65535"));
  EXPECT_EQ(Raw().head(0, 2).key("k", GgufType::kUint8).put('x').key("k", GgufType::kUint8).put('y').error(),
            "m.gguf: k: this key occurs twice");
}

TEST(GgufCorrupt, MetadataValues) {
  EXPECT_EQ(Raw().head(0, 1).key("k", static_cast<GgufType>(13)).u64(0).error(), "m.gguf: k: unknown value type 13");
  EXPECT_EQ(Raw().head(0, 1).key("k", GgufType::kUint64).u32(0).error(),
            "m.gguf: k: needs 8 bytes at byte 37, but only 4 are left: truncated?");
  EXPECT_EQ(Raw().head(0, 1).key("k", GgufType::kBool).put('\2').error(),
            "m.gguf: k: found the byte 2, expected a bool (0 or 1)");
  EXPECT_THAT(Raw().head(0, 1).key("k", GgufType::kString).u64(9).put('x').error(),
              StartsWith("m.gguf: k: needs 9 bytes"));
  EXPECT_THAT(Raw().head(0, 1).key("a\nb", GgufType::kString).u64(9).put('x').error(), StartsWith("m.gguf: a\\x0ab: "));
}

TEST(GgufCorrupt, MetadataArrays) {
  const auto array = [](GgufType type, uint64_t count) {
    return Raw().head(0, 1).key("k", GgufType::kArray).u32(static_cast<uint32_t>(type)).u64(count);
  };
  EXPECT_THAT(array(GgufType::kUint64, uint64_t{1} << 61).u64(0).error(),
              StartsWith("m.gguf: k: 2305843009213693952 elements of type uint64 at byte 41, more than"));
  EXPECT_THAT(array(GgufType::kString, 2).u64(0).error(), HasSubstr("2 elements of type string"));
  EXPECT_THAT(array(GgufType::kString, 2).u64(100).u64(0).error(), HasSubstr("needs 100 bytes"));
  EXPECT_THAT(array(GgufType::kArray, 1).u64(0).error(), HasSubstr("1 elements of type array"));
  EXPECT_EQ(array(static_cast<GgufType>(99), 0).u64(0).error(), "m.gguf: k: unknown element type 99");
  EXPECT_THAT(array(GgufType::kBool, 1).put('\7').error(), HasSubstr("found the byte 7"));
  Raw deep = Raw().head(0, 1).key("k", GgufType::kArray);
  for (int i = 0; i < 100'000; ++i) deep.u32(static_cast<uint32_t>(GgufType::kArray)).u64(1);
  EXPECT_EQ(deep.error(), "m.gguf: k: arrays nested more than 8 deep");
}

TEST(GgufCorrupt, Alignment) {
  const auto aligned = [](GgufType type, uint64_t alignment) {
    Raw raw = Raw().head(0, 1).key("general.alignment", type);
    return type == GgufType::kUint32 ? raw.u32(static_cast<uint32_t>(alignment)) : raw.u64(alignment);
  };
  EXPECT_EQ(aligned(GgufType::kUint32, 24).error(), "m.gguf: general.alignment: found 24, expected a power of two");
  EXPECT_THAT(aligned(GgufType::kUint32, 0).error(), HasSubstr("general.alignment: found the integer 0"));
  EXPECT_THAT(aligned(GgufType::kUint64, uint64_t{1} << 40).error(), HasSubstr("found the integer 1099511627776"));
  EXPECT_THAT(aligned(GgufType::kFloat64, 0).error(), HasSubstr("found the number 0, expected an integer"));
}

TEST(GgufCorrupt, TensorInfos) {
  constexpr uint64_t kHuge = uint64_t{1} << 62;
  EXPECT_EQ(Raw().head(1, 0).tensor("", {4}, kF32, 0).data(16).error(), "m.gguf: tensor 0: has an empty name");
  EXPECT_EQ(Raw().head(1, 0).tensor("t", {1, 1, 1, 1, 1}, kF32, 0).data(4).error(),
            "m.gguf: tensor t: has 5 dimensions, at most 4");
  EXPECT_EQ(Raw().head(1, 0).tensor("t", {4, ~uint64_t{0}}, kF32, 0).data(4).error(),
            "m.gguf: tensor t: dimension 1 is 18446744073709551615");
  EXPECT_EQ(Raw().head(1, 0).tensor("t", {kHuge, 8}, kF32, 0).data(4).error(),
            "m.gguf: tensor t: shape [8,4611686018427387904] of F32: size overflows");
  EXPECT_EQ(Raw().head(1, 0).tensor("t", {kHuge}, kF32, 0).data(4).error(),
            "m.gguf: tensor t: shape [4611686018427387904] of F32: size overflows");
  EXPECT_EQ(Raw().head(1, 0).tensor("t", {33, 2}, kQ4_0, 0).data(99).error(),
            "m.gguf: tensor t: shape [2,33]: rows are no multiple of the 32 elements of a Q4_0 block");
  EXPECT_EQ(Raw().head(1, 0).tensor("t", {}, kQ4_0, 0).data(99).error(),
            "m.gguf: tensor t: shape []: rows are no multiple of the 32 elements of a Q4_0 block");
  EXPECT_EQ(Raw().head(1, 0).tensor("t", {4}, 4, 0).data(16).error(), "m.gguf: tensor t: unknown type, number 4");
  EXPECT_EQ(Raw().head(1, 0).tensor("t", {4}, 4, 0).data(16).code(), ErrorCode::kUnsupported);
  EXPECT_THAT(Raw().head(1, 0).text("t").u32(2).u64(4).u64(4).error(), StartsWith("m.gguf: tensor t: needs 4 bytes"));
}

TEST(GgufCorrupt, TensorOffsets) {
  EXPECT_EQ(Raw().head(1, 0).tensor("t", {4}, kF32, 16).data(32).error(),
            "m.gguf: tensor t: offset 16 is no multiple of the alignment 32");
  EXPECT_EQ(Raw().head(1, 0).tensor("t", {4}, kF32, 32).data(47).error(),
            "m.gguf: tensor t: offset 32 with 16 bytes ends outside the file, which has 47 bytes of tensor data: "
            "truncated?");
  EXPECT_THAT(Raw().head(1, 0).tensor("t", {4}, kF32, ~uint64_t{31}).data(32).error(),
              HasSubstr("offset 18446744073709551584 with 16 bytes ends outside the file"));
  EXPECT_EQ(Raw().head(2, 0).tensor("t", {4}, kF32, 0).tensor("t", {4}, kF32, 32).data(64).error(),
            "m.gguf: tensor t: occurs twice");
  EXPECT_EQ(Raw().head(2, 0).tensor("t", {16}, kF32, 0).tensor("u", {4}, kF32, 32).data(64).error(),
            "m.gguf: tensor u: offset 32 lies within tensor t");
}

/// Cut anywhere, a file with a bit of everything gives an error and never a crash.
TEST(GgufCorrupt, EveryTruncation) {
  Raw raw = Raw().head(1, 3);
  raw.key("a", GgufType::kString).text("value");
  raw.key("b", GgufType::kArray).u32(static_cast<uint32_t>(GgufType::kString)).u64(2).text("x").text("yz");
  raw.key("c", GgufType::kArray).u32(static_cast<uint32_t>(GgufType::kInt16)).u64(2).u32(0);
  raw.tensor("t", {4}, kF32, 0).data(16);
  ASSERT_EQ(GgufFile::parse("m.gguf", raw.bytes_).tensors().size(), 1u);
  while (!raw.bytes_.empty()) {
    raw.bytes_.pop_back();
    EXPECT_THAT(raw.error(), StartsWith("m.gguf: ")) << raw.bytes_.size();
  }
}

TEST(GgufCorrupt, TheErrorNamesThePath) {
  const TestFolder folder;
  EXPECT_EQ(error_of([&] { (void)GgufFile::open(folder.write("x.gguf", "")); }),
            folder.path("x.gguf") + ": magic: needs 4 bytes at byte 0, but only 0 are left: truncated?");
}

}  // namespace
}  // namespace headrace
