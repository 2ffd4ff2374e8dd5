#include "files/gguf.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <map>

#include "files/gguf_writer.h"
#include "files/safetensors.h"
#include "files/test_folder.h"

namespace headrace {
namespace {

using testing::HasSubstr;

std::vector<std::byte> ramp(size_t size) {
  std::vector<std::byte> out(size);
  for (size_t i = 0; i < size; ++i) out[i] = static_cast<std::byte>(i * 7 + 3);
  return out;
}

std::string bytes_of(const TensorView& view) {
  return {reinterpret_cast<const char*>(view.bytes.data()), view.bytes.size()};
}

struct Pair {
  std::string key;
  GgufType type;
  MetaValue value;
  GgufType inner = GgufType::kInt32;
};

/// Every type with its extremes, lists of each, and lists of lists.
std::vector<Pair> pairs_of_every_type() {
  using enum GgufType;
  constexpr int64_t kMin64 = Metadata::kMinInt;
  constexpr int64_t kMax64 = Metadata::kMaxInt;
  return {
      {"u8", kUint8, {int64_t{255}}},
      {"i8", kInt8, {int64_t{-128}}},
      {"u16", kUint16, {int64_t{65535}}},
      {"i16", kInt16, {int64_t{-32768}}},
      {"u32", kUint32, {int64_t{4294967295}}},
      {"i32", kInt32, {int64_t{-2147483648}}},
      {"u64", kUint64, {~uint64_t{0}}},
      {"u64.small", kUint64, {kMax64}},
      {"i64", kInt64, {kMin64}},
      {"f32", kFloat32, {-0.15625}},
      {"f64", kFloat64, {1e-300}},
      {"bool", kBool, {true}},
      {"text", kString, {std::string("a\0b\xff", 4)}},
      {"text.empty", kString, {std::string()}},
      {"list.u8", kUint8, {std::vector<int64_t>{0, 255}}},
      {"list.i8", kInt8, {std::vector<int64_t>{-128, 127}}},
      {"list.u16", kUint16, {std::vector<int64_t>{0, 65535}}},
      {"list.i16", kInt16, {std::vector<int64_t>{-32768, 32767}}},
      {"list.u32", kUint32, {std::vector<int64_t>{0, 4294967295}}},
      {"list.i32", kInt32, {std::vector<int64_t>{-2147483648, 2147483647}}},
      {"list.u64", kUint64, {std::vector<int64_t>{0, kMax64}}},
      {"list.u64.wide", kUint64, {MetaList{{int64_t{5}}, {~uint64_t{0}}, {int64_t{6}}}}},
      {"list.i64", kInt64, {std::vector<int64_t>{kMin64, kMax64}}},
      {"list.f32", kFloat32, {std::vector<double>{0.5, -2.0}}},
      {"list.f64", kFloat64, {std::vector<double>{1e300, 0.1}}},
      {"list.bool", kBool, {std::vector<bool>{true, false, true}}},
      {"list.text", kString, {std::vector<std::string>{"", "x", "a longer string than fits in place"}}},
      {"list.empty", kFloat32, {MetaList{}}},
      {"lists", kArray, {MetaList{{std::vector<int64_t>{1, 2}}, {MetaList{}}, {std::vector<int64_t>{-3}}}}, kInt16},
      {"lists.deep", kArray, {MetaList{{MetaList{{std::vector<std::string>{"x"}}}}}}, kString},
  };
}

TEST(Gguf, RoundTripOfEveryMetadataType) {
  GgufWriter writer;
  for (const Pair& pair : pairs_of_every_type()) writer.add(pair.key, pair.type, pair.value, pair.inner);
  const std::vector<std::byte> bytes = writer.bytes();
  const GgufFile file = GgufFile::parse("m.gguf", bytes);
  EXPECT_EQ(file.version(), 3);
  EXPECT_EQ(file.metadata().entries().size(), pairs_of_every_type().size());
  for (const Pair& pair : pairs_of_every_type()) {
    const MetaValue* value = file.metadata().find(pair.key);
    ASSERT_NE(value, nullptr) << pair.key;
    EXPECT_EQ(*value, pair.value) << pair.key << ": " << describe(*value);
  }
}

TEST(Gguf, TheWriterRefusesWhatDoesNotFit) {
  GgufWriter writer;
  EXPECT_EQ(error_of([&] { writer.add("k", GgufType::kUint8, {int64_t{256}}); }),
            "k: the integer 256 does not fit the GGUF type uint8");
  EXPECT_THAT(error_of([&] { writer.add("k", GgufType::kInt64, {~uint64_t{0}}); }), HasSubstr("int64"));
  EXPECT_THAT(error_of([&] { writer.add("k", GgufType::kBool, {std::vector<int64_t>{1}}); }), HasSubstr("bool"));
  EXPECT_THAT(error_of([&] { writer.add("k", GgufType::kString, {0.5}); }), HasSubstr("string"));
  EXPECT_THAT(error_of([&] { GgufWriter(24); }), HasSubstr("power of two"));
  const auto data = ramp(4);
  EXPECT_THAT(error_of([&] { writer.add_tensor("t", {DType::kF32, {2}, data}); }), HasSubstr("expected 8"));
  EXPECT_THAT(error_of([&] { writer.add_tensor("t", {DType::kBool, {4}, data}); }), HasSubstr("no type for BOOL"));
}

TEST(Gguf, RoundTripOfTensorsAtEveryAlignment) {
  for (const uint32_t alignment : {8u, 32u, 64u, 4096u}) {
    const auto a = ramp(4 * 6);
    const auto b = ramp(18 * 2 * 3);
    const auto c = ramp(2);
    GgufWriter writer(alignment);
    writer.add_tensor("a", {DType::kF32, {2, 3}, a});
    writer.add_tensor("b", {DType::kQ4_0, {3, 1, 2, 32}, b});
    writer.add_tensor("c", {DType::kF16, {1}, c});
    writer.add_tensor("none", {DType::kF32, {0, 4}, {}});
    const std::vector<std::byte> bytes = writer.bytes();
    const GgufFile file = GgufFile::parse("m.gguf", bytes);
    ASSERT_EQ(file.tensors().size(), 4u);
    EXPECT_EQ(file.tensors()[0].name, "a");
    EXPECT_EQ(file.find("a")->shape, (Shape{2, 3}));
    EXPECT_EQ(file.find("b")->shape, (Shape{3, 1, 2, 32}));
    EXPECT_EQ(file.find("b")->dtype, DType::kQ4_0);
    EXPECT_EQ(bytes_of(*file.find("a")), bytes_of({DType::kF32, {}, a}));
    EXPECT_EQ(bytes_of(*file.find("b")), bytes_of({DType::kF32, {}, b}));
    EXPECT_EQ(bytes_of(*file.find("c")), bytes_of({DType::kF32, {}, c}));
    EXPECT_EQ((file.find("b")->bytes.data() - file.find("a")->bytes.data()) % alignment, 0);
    EXPECT_EQ(file.find("d"), nullptr);
    EXPECT_EQ(file.table().total_bytes(), 24 + 108 + 2);
  }
}

TEST(Gguf, TheWriterWritesTheSameToAFile) {
  const TestFolder folder;
  const auto data = ramp(10);
  GgufWriter writer(64);
  writer.add_string("general.name", "x");
  writer.add_tensor("a", {DType::kI8, {10}, data});
  writer.write(folder.path("m.gguf"));
  const MappedFile file(folder.path("m.gguf"));
  const auto expected = writer.bytes();
  EXPECT_TRUE(std::equal(file.bytes().begin(), file.bytes().end(), expected.begin(), expected.end()));
  EXPECT_THAT(error_of([&] { writer.write(folder.path("no/m.gguf")); }), HasSubstr("cannot be created"));
}

TEST(Gguf, Version2IsTheSameLayout) {
  GgufWriter writer;
  writer.add_u32("k", 5);
  std::vector<std::byte> bytes = writer.bytes();
  bytes[4] = std::byte{2};
  const GgufFile file = GgufFile::parse("m.gguf", bytes);
  EXPECT_EQ(file.version(), 2);
  EXPECT_EQ(file.metadata().get_int("k"), 5);
}

/// The F32 files hold the weights of the model folders; the names map one to one for tensors that are not permuted.
TEST(Gguf, ReadsTheFixtures) {
  const std::string data = HR_TEST_DATA;
  const GgufFile gguf = GgufFile::open(data + "/gguf/qwen2-F32.gguf");
  EXPECT_EQ(gguf.metadata().get_string("general.architecture"), "qwen2");
  EXPECT_EQ(gguf.metadata().require_strings("tokenizer.ggml.tokens").size(), 544u);
  const SafetensorsModel hf = SafetensorsModel::open(data + "/models/qwen2/model.safetensors");
  const std::map<std::string, std::string> names{
      {"token_embd.weight", "model.embed_tokens.weight"},
      {"output_norm.weight", "model.norm.weight"},
      {"blk.0.attn_q.weight", "model.layers.0.self_attn.q_proj.weight"},
      {"blk.0.attn_q.bias", "model.layers.0.self_attn.q_proj.bias"},
      {"blk.1.ffn_down.weight", "model.layers.1.mlp.down_proj.weight"},
  };
  for (const auto& [ours, theirs] : names) {
    ASSERT_NE(gguf.find(ours), nullptr) << ours;
    ASSERT_NE(hf.find(theirs), nullptr) << theirs;
    EXPECT_EQ(gguf.find(ours)->shape, hf.find(theirs)->shape) << ours;
    EXPECT_EQ(bytes_of(*gguf.find(ours)), bytes_of(*hf.find(theirs))) << ours;
  }
  EXPECT_EQ(GgufFile::open(data + "/gguf/qwen2-Q8_0.gguf").find("blk.0.attn_q.weight")->dtype, DType::kQ8_0);
  EXPECT_EQ(GgufFile::open(data + "/gguf/llama-256-Q4_K_M.gguf").find("blk.0.attn_q.weight")->dtype, DType::kQ4_K);
}

/// A model in three files: the tensors a0, a1, a2, one each.
class SplitGguf : public testing::Test {
 protected:
  struct Shard {
    int64_t no, count, tensors;
    std::string tensor;
  };
  std::string write(const std::string& name, const Shard& shard) {
    GgufWriter writer;
    writer.add("split.no", GgufType::kUint16, {shard.no});
    writer.add("split.count", GgufType::kUint16, {shard.count});
    writer.add("split.tensors.count", GgufType::kInt32, {shard.tensors});
    writer.add_tensor(shard.tensor, {DType::kI8, {10}, data_});
    writer.write(folder_.path(name));
    return folder_.path(name);
  }
  void SetUp() override {
    first_ = write("m-00001-of-00003.gguf", {0, 3, 3, "a0"});
    write("m-00002-of-00003.gguf", {1, 3, 3, "a1"});
    write("m-00003-of-00003.gguf", {2, 3, 3, "a2"});
  }

  TestFolder folder_;
  std::vector<std::byte> data_ = ramp(10);
  std::string first_;
};

TEST_F(SplitGguf, OpensAllFromTheFirst) {
  const GgufFile file = GgufFile::open(first_);
  ASSERT_EQ(file.tensors().size(), 3u);
  EXPECT_EQ(file.files().size(), 3u);
  for (const std::string name : {"a0", "a1", "a2"}) {
    ASSERT_NE(file.find(name), nullptr);
    EXPECT_EQ(bytes_of(*file.find(name)), bytes_of({DType::kI8, {}, data_}));
    file.drop_pages(file.find(name)->bytes);
    EXPECT_EQ(bytes_of(*file.find(name)), bytes_of({DType::kI8, {}, data_}));
  }
}

TEST_F(SplitGguf, WantsTheFirst) {
  EXPECT_THAT(error_of([&] { (void)GgufFile::open(folder_.path("m-00002-of-00003.gguf")); }),
              HasSubstr("split.no: this is file 2 of 3 of a split model; give the first, which ends in "
                        "\"-00001-of-00003.gguf\""));
}

TEST_F(SplitGguf, WantsTheNames) {
  const std::string renamed = write("renamed.gguf", {0, 3, 3, "a0"});
  EXPECT_THAT(error_of([&] { (void)GgufFile::open(renamed); }), HasSubstr("name does not end in"));
}

TEST_F(SplitGguf, NamesAMissingFile) {
  std::filesystem::remove(folder_.path("m-00003-of-00003.gguf"));
  EXPECT_THAT(
      error_of([&] { (void)GgufFile::open(first_); }),
      testing::AllOf(HasSubstr("file 3 of 3 of the split model is missing"), HasSubstr("m-00003-of-00003.gguf")));
}

TEST_F(SplitGguf, RefusesADuplicateFile) {
  write("m-00003-of-00003.gguf", {1, 3, 3, "a1"});
  EXPECT_THAT(error_of([&] { (void)GgufFile::open(first_); }),
              HasSubstr("m-00003-of-00003.gguf: split.no: found 1, expected 2"));
}

TEST_F(SplitGguf, RefusesAnotherCount) {
  write("m-00002-of-00003.gguf", {1, 4, 3, "a1"});
  EXPECT_THAT(error_of([&] { (void)GgufFile::open(first_); }),
              testing::AllOf(HasSubstr("m-00002-of-00003.gguf: split.count: found 4"), HasSubstr("has 3")));
}

TEST_F(SplitGguf, RefusesADuplicateTensor) {
  write("m-00003-of-00003.gguf", {2, 3, 3, "a0"});
  EXPECT_THAT(error_of([&] { (void)GgufFile::open(first_); }),
              HasSubstr("m-00003-of-00003.gguf: tensor a0: another file of the split model has it too"));
}

TEST_F(SplitGguf, RefusesAWrongTotal) {
  write("m-00001-of-00003.gguf", {0, 3, 4, "a0"});
  EXPECT_THAT(error_of([&] { (void)GgufFile::open(first_); }),
              HasSubstr("split.tensors.count: says 4, but the 3 files have 3"));
}

TEST_F(SplitGguf, RefusesAPlaceOutsideTheCount) {
  write("m-00001-of-00003.gguf", {3, 3, 3, "a0"});
  EXPECT_THAT(error_of([&] { (void)GgufFile::open(first_); }),
              HasSubstr("split.no: found the integer 3, expected an integer from 0 to 2"));
}

}  // namespace
}  // namespace headrace
