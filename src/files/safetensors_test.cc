#include "files/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/byte_order.h"
#include "files/test_folder.h"

namespace headrace {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

std::string file_of(std::string_view header, size_t data_bytes) {
  std::string out(8, '\0');
  store_le(out.data(), uint64_t{header.size()});
  out += header;
  for (size_t i = 0; i < data_bytes; ++i) out += static_cast<char>(i);
  return out;
}

SafetensorsContents parse(const std::string& file) {
  return parse_safetensors("m.safetensors", std::as_bytes(std::span(file)));
}

std::string error_in(std::string_view header, size_t data_bytes = 16) {
  const std::string file = file_of(header, data_bytes);
  return error_of([&] { (void)parse(file); });
}

TEST(Safetensors, ReadsEveryType) {
  const std::string file = file_of(R"({"__metadata__":{"format":"pt"},
    "b":{"dtype":"F16","shape":[2,1],"data_offsets":[8,12]}, "a":{"dtype":"I64","shape":[],"data_offsets":[0,8]},
    "none":{"dtype":"F32","shape":[0,3],"data_offsets":[8,8]},
    "c":{"dtype":"F8_E4M3","shape":[1],"data_offsets":[12,13]}, "d":{"dtype":"F8_E5M2","shape":[1],"data_offsets":[13,14]},
    "e":{"dtype":"BOOL","shape":[1],"data_offsets":[14,15]}, "f":{"dtype":"U8","shape":[1],"data_offsets":[15,16]},
    "g":{"dtype":"I8","shape":[1],"data_offsets":[16,17]}, "h":{"dtype":"I16","shape":[1],"data_offsets":[17,19]},
    "i":{"dtype":"I32","shape":[1],"data_offsets":[19,23]}, "j":{"dtype":"F64","shape":[1],"data_offsets":[23,31]},
    "k":{"dtype":"F32","shape":[1],"data_offsets":[31,35]}, "l":{"dtype":"BF16","shape":[1],"data_offsets":[35,37]}}  )",
                                   37);
  const SafetensorsContents contents = parse(file);
  EXPECT_THAT(contents.metadata, ElementsAre(testing::Pair("format", "pt")));
  std::vector<std::string> names;
  for (const NamedTensor& tensor : contents.tensors.all()) names.push_back(tensor.name);
  EXPECT_THAT(names, ElementsAre("a", "none", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"));
  EXPECT_EQ(contents.tensors.find("a")->dtype, DType::kI64);
  EXPECT_EQ(contents.tensors.find("a")->shape, Shape{});
  EXPECT_EQ(contents.tensors.find("b")->shape, (Shape{2, 1}));
  EXPECT_EQ(contents.tensors.find("b")->bytes[0], std::byte{8});
  EXPECT_EQ(contents.tensors.find("c")->dtype, DType::kF8E4M3);
  EXPECT_EQ(contents.tensors.find("l")->dtype, DType::kBF16);
  EXPECT_EQ(contents.tensors.find("z"), nullptr);
  EXPECT_EQ(contents.tensors.total_bytes(), 37);
}

TEST(Safetensors, MalformedHeads) {
  EXPECT_EQ(error_of([] { (void)parse("1234567"); }), "m.safetensors: header length: the file has only 7 bytes");
  EXPECT_THAT(error_of([] { (void)parse(std::string(16, '\xff')); }),
              HasSubstr("header length: 18446744073709551615 bytes, at most 100000000"));
  std::string cut = file_of("{}", 0);
  cut.pop_back();
  EXPECT_EQ(error_of([&] { (void)parse(cut); }),
            "m.safetensors: header length: 2 bytes, but only 1 are left: truncated?");
  EXPECT_THAT(error_in("{\"a\":", 0), HasSubstr("m.safetensors: byte 6: not JSON: "));
  EXPECT_THAT(error_in("", 0), HasSubstr("not JSON"));
  EXPECT_EQ(error_in("[]", 0), "m.safetensors: header: found a JSON array, expected an object");
  EXPECT_THAT(error_in("{\"\xff\":1}", 0), HasSubstr("not JSON: "));
  EXPECT_EQ(error_in(std::string(1'000'000, '['), 0), "m.safetensors: JSON nested more than 64 deep");
  EXPECT_EQ(error_in(R"({"__metadata__":[]})", 0), "m.safetensors: __metadata__: expected an object of strings");
  EXPECT_EQ(error_in(R"({"__metadata__":{"a":1}})", 0), "m.safetensors: __metadata__: a: expected a string");
}

TEST(Safetensors, MalformedEntries) {
  const auto entry = [](std::string_view fields) { return error_in(cat("{\"t\":{", fields, "}}")); };
  EXPECT_EQ(error_in(R"({"t":5})"), "m.safetensors: tensor t: found a JSON number, expected an object");
  EXPECT_EQ(entry(R"("shape":[4],"data_offsets":[0,16])"), "m.safetensors: tensor t: dtype: is missing");
  EXPECT_EQ(entry(R"("dtype":5,"shape":[4],"data_offsets":[0,16])"),
            "m.safetensors: tensor t: dtype: expected a string");
  EXPECT_EQ(entry(R"("dtype":"U32","shape":[4],"data_offsets":[0,16])"),
            "m.safetensors: tensor t: dtype: U32 is not supported");
  EXPECT_EQ(entry(R"("dtype":"Q4_0","shape":[32],"data_offsets":[0,18])"),
            "m.safetensors: tensor t: dtype: Q4_0 is not supported");
  EXPECT_EQ(entry(R"("dtype":"F32","data_offsets":[0,16])"), "m.safetensors: tensor t: shape: is missing");
  EXPECT_EQ(entry(R"("dtype":"F32","shape":4,"data_offsets":[0,16])"),
            "m.safetensors: tensor t: shape: expected a list of numbers");
  EXPECT_EQ(entry(R"("dtype":"F32","shape":[-4],"data_offsets":[0,16])"),
            "m.safetensors: tensor t: shape: expected numbers of at least 0");
  EXPECT_EQ(entry(R"("dtype":"F32","shape":[4.0],"data_offsets":[0,16])"),
            "m.safetensors: tensor t: shape: expected numbers of at least 0");
  EXPECT_EQ(entry(R"("dtype":"F32","shape":[18446744073709551615],"data_offsets":[0,16])"),
            "m.safetensors: tensor t: shape: 18446744073709551615 is too large");
  EXPECT_EQ(entry(R"("dtype":"F32","shape":[1,1,1,1,1,1,1,1,4],"data_offsets":[0,16])"),
            "m.safetensors: tensor t: shape: 9 dimensions, at most 8");
  EXPECT_EQ(entry(R"("dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,16])"),
            "m.safetensors: tensor t: shape: [4294967296,4294967296] of F32: size overflows");
  EXPECT_EQ(entry(R"("dtype":"F32","shape":[4])"), "m.safetensors: tensor t: data_offsets: is missing");
  EXPECT_EQ(entry(R"("dtype":"F32","shape":[4],"data_offsets":[0])"),
            "m.safetensors: tensor t: data_offsets: 1 numbers, expected begin and end");
  EXPECT_EQ(entry(R"("dtype":"F32","shape":[4],"data_offsets":[16,0])"),
            "m.safetensors: tensor t: data_offsets: [16,0] is outside the 16 bytes of data in the file: truncated?");
  EXPECT_EQ(entry(R"("dtype":"F32","shape":[4],"data_offsets":[1,17])"),
            "m.safetensors: tensor t: data_offsets: [1,17] is outside the 16 bytes of data in the file: truncated?");
  EXPECT_EQ(entry(R"("dtype":"F32","shape":[3],"data_offsets":[0,16])"),
            "m.safetensors: tensor t: data_offsets: 16 bytes, expected 12 for F32 [3]");
}

TEST(Safetensors, TensorsThatDoNotFitTogether) {
  EXPECT_EQ(error_in(R"({"t":{"dtype":"U8","shape":[9],"data_offsets":[0,9]},
                         "u":{"dtype":"U8","shape":[8],"data_offsets":[8,16]}})"),
            "m.safetensors: tensor u: data_offsets: overlaps another");
  EXPECT_EQ(error_in(R"({"t":{"dtype":"U8","shape":[7],"data_offsets":[0,7]},
                         "u":{"dtype":"U8","shape":[8],"data_offsets":[8,16]}})"),
            "m.safetensors: tensor u: data_offsets: 1 bytes before it belong to no tensor");
  EXPECT_EQ(error_in(R"({"t":{"dtype":"U8","shape":[7],"data_offsets":[0,7]}})"),
            "m.safetensors: 9 bytes at the end belong to no tensor");
  EXPECT_EQ(error_in(R"({"t":{"dtype":"U8","shape":[8],"data_offsets":[0,8]},
                         "t":{"dtype":"U8","shape":[8],"data_offsets":[8,16]}})"),
            "m.safetensors: t: this key occurs twice");
}

TEST(Safetensors, ReadsTheFixtures) {
  const std::string models = std::string(HR_TEST_DATA) + "/models/";
  const SafetensorsModel one = SafetensorsModel::open(models + "llama/model.safetensors");
  ASSERT_NE(one.find("model.embed_tokens.weight"), nullptr);
  EXPECT_EQ(one.find("model.embed_tokens.weight")->shape, (Shape{544, 64}));
  EXPECT_EQ(SafetensorsModel::open(models + "llama-tied-bf16/model.safetensors").tensors()[0].view.dtype, DType::kBF16);

  const SafetensorsModel many = SafetensorsModel::open_index(models + "mixtral/model.safetensors.index.json");
  EXPECT_EQ(many.files().size(), 3u);
  size_t expected = 0;
  for (const MappedFile& file : many.files()) expected += SafetensorsModel::open(file.path()).tensors().size();
  EXPECT_EQ(many.tensors().size(), expected);
  const TensorView* first = many.find("model.layers.0.self_attn.q_proj.weight");
  ASSERT_NE(first, nullptr);
  const std::vector<std::byte> before(first->bytes.begin(), first->bytes.end());
  many.drop_pages(first->bytes);
  EXPECT_TRUE(std::equal(before.begin(), before.end(), first->bytes.begin()));
}

class SafetensorsIndex : public testing::Test {
 protected:
  void SetUp() override {
    folder_.write("m-1.safetensors", file_of(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})", 4));
    folder_.write("m-2.safetensors", file_of(R"({"b":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},
                                                 "a":{"dtype":"U8","shape":[4],"data_offsets":[4,8]}})",
                                             8));
  }
  SafetensorsModel open(std::string_view index) {
    return SafetensorsModel::open_index(folder_.write("model.safetensors.index.json", index));
  }
  std::string error(std::string_view index) {
    return error_of([&] { (void)open(index); });
  }
  TestFolder folder_;
};

TEST_F(SafetensorsIndex, TheIndexDecidesWhereATensorIs) {
  const SafetensorsModel model = open(R"({"weight_map":{"a":"m-1.safetensors","b":"m-2.safetensors"}})");
  EXPECT_EQ(model.tensors().size(), 2u);
  EXPECT_TRUE(model.files()[0].contains(model.find("a")->bytes));
  EXPECT_TRUE(model.files()[1].contains(model.find("b")->bytes));
}

TEST_F(SafetensorsIndex, NamesAMissingShard) {
  EXPECT_THAT(error(R"({"weight_map":{"a":"m-3.safetensors"}})"),
              HasSubstr("index.json: weight_map: the file m-3.safetensors is missing"));
}

TEST_F(SafetensorsIndex, NamesATensorThatIsNotInItsShard) {
  EXPECT_THAT(error(R"({"weight_map":{"a":"m-1.safetensors","b":"m-1.safetensors"}})"),
              HasSubstr("m-1.safetensors: tensor b: is not here, but model.safetensors.index.json says so"));
}

TEST_F(SafetensorsIndex, StaysInItsFolder) {
  for (const std::string name : {"../x.safetensors", "/x.safetensors", "..", "", "sub/m-1.safetensors", "m-1.bin",
                                 "model.safetensors.index.json", "..\\\\x.safetensors", "x\\u0000.safetensors"}) {
    EXPECT_THAT(error(cat(R"({"weight_map":{"a":")", name, R"("}})")),
                AllOf(HasSubstr("index.json: weight_map: a: "), HasSubstr("is not the name of a .safetensors file")))
        << name;
  }
}

TEST_F(SafetensorsIndex, MalformedIndexes) {
  EXPECT_THAT(error("{}"), HasSubstr("index.json: weight_map: is missing or not an object"));
  EXPECT_THAT(error("[]"), HasSubstr("index.json: weight_map: is missing or not an object"));
  EXPECT_THAT(error(R"({"weight_map":[]})"), HasSubstr("weight_map: is missing or not an object"));
  EXPECT_THAT(error(R"({"weight_map":{}})"), HasSubstr("weight_map: lists no tensor"));
  EXPECT_THAT(error(R"({"weight_map":{"a":1}})"), HasSubstr("weight_map: a: expected a file name"));
  EXPECT_THAT(error(R"({"weight_map":{"a":"m-1.safetensors","a":"m-2.safetensors"}})"),
              HasSubstr("index.json: a: this key occurs twice"));
  EXPECT_THAT(error("{"), HasSubstr("index.json: byte 2: not JSON"));
}

TEST_F(SafetensorsIndex, NamesABrokenShard) {
  folder_.write("m-1.safetensors", "short");
  EXPECT_THAT(error(R"({"weight_map":{"a":"m-1.safetensors"}})"), HasSubstr("m-1.safetensors: header length"));
}

}  // namespace
}  // namespace headrace
