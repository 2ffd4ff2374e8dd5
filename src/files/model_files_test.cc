#include "files/model_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <utility>

#include "base/byte_order.h"
#include "files/gguf_writer.h"
#include "files/json_file.h"
#include "files/test_folder.h"

namespace headrace {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

const std::string kData = HR_TEST_DATA;

std::string open_error(const std::string& argument) {
  return error_of([&] { (void)open_model(argument); });
}

std::string safetensors_of(std::string_view tensor) {
  const std::string header = cat("{\"", tensor, "\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}}");
  std::string out(8, '\0');
  store_le(out.data(), uint64_t{header.size()});
  return out + header + "abcd";
}

void write_gguf(const std::string& path) {
  GgufWriter writer;
  writer.add_string("general.architecture", "llama");
  writer.add_string("tokenizer.chat_template", "main");
  writer.add_string("tokenizer.chat_template.tool_use", "tools");
  const std::vector<std::byte> data(4);
  writer.add_tensor("t", {DType::kF32, {1}, data});
  writer.write(path);
}

TEST(ModelFiles, OpensAFolderOfTheFixtures) {
  const ModelFiles model = open_model(kData + "/models/llama");
  EXPECT_EQ(model.format(), ModelFormat::kSafetensors);
  EXPECT_EQ(model_format_name(model.format()), "safetensors");
  EXPECT_EQ(model.path(), kData + "/models/llama");
  EXPECT_EQ(model.metadata().require_string("model_type"), "llama");
  EXPECT_EQ(model.metadata().source(), kData + "/models/llama/config.json");
  EXPECT_TRUE(model.generation_config().has("eos_token_id"));
  EXPECT_FALSE(model.has_quantization_config());
  EXPECT_THAT(model.tokenizer_json(), StartsWith("{"));
  EXPECT_THAT(model.tokenizer_config_json(), StartsWith("{"));
  ASSERT_NE(model.chat_template(), nullptr);
  EXPECT_THAT(*model.chat_template(), HasSubstr("messages"));
  EXPECT_NE(model.find("model.norm.weight"), nullptr);
  int64_t bytes = 0;
  for (const NamedTensor& tensor : model.tensors()) bytes += tensor_bytes(tensor.view.dtype, tensor.view.shape);
  EXPECT_EQ(model.tensor_bytes(), bytes);
}

TEST(ModelFiles, OpensShardsAndSurvivesAMove) {
  ModelFiles model = open_model(kData + "/models/mixtral");
  const std::byte* before = model.find("model.norm.weight")->bytes.data();
  const ModelFiles moved = std::move(model);
  EXPECT_EQ(moved.find("model.norm.weight")->bytes.data(), before);
  const std::byte first = *before;
  moved.drop_pages(moved.find("model.norm.weight")->bytes);
  EXPECT_EQ(*before, first);
}

TEST(ModelFiles, OpensAGguf) {
  const ModelFiles model = open_model(kData + "/gguf/llama-Q8_0.gguf");
  EXPECT_EQ(model.format(), ModelFormat::kGguf);
  EXPECT_EQ(model_format_name(model.format()), "GGUF");
  EXPECT_EQ(model.metadata().require_string("general.architecture"), "llama");
  EXPECT_TRUE(model.generation_config().entries().empty());
  EXPECT_TRUE(model.tokenizer_json().empty());
  EXPECT_FALSE(model.has_quantization_config());
  EXPECT_EQ(model.find("token_embd.weight")->dtype, DType::kQ8_0);
}

TEST(ModelFiles, OpensAGgufByAnotherName) {
  const TestFolder folder;
  write_gguf(folder.path("blob"));
  EXPECT_EQ(open_model(folder.path("blob")).path(), folder.path("blob"));
}

TEST(ModelFiles, OpensAFolderWithOneGguf) {
  const TestFolder folder;
  write_gguf(folder.path("m.gguf"));
  folder.write("README.md", "x");
  folder.write("config.json", "{}");
  const ModelFiles model = open_model(folder.path());
  EXPECT_EQ(model.path(), folder.path("m.gguf"));
  EXPECT_EQ(model.name(), folder.path());
  ASSERT_EQ(model.chat_templates().size(), 2u);
  EXPECT_EQ(*model.chat_template(), "main");
  EXPECT_EQ(*model.chat_template("tool_use"), "tools");
  EXPECT_EQ(model.chat_template("none"), nullptr);
  write_gguf(folder.path("n.gguf"));
  EXPECT_THAT(open_error(folder.path()), HasSubstr("has several GGUF models (m.gguf, n.gguf); give one of the files"));
}

TEST(ModelFiles, OpensAFolderWithOneSplitGguf) {
  const TestFolder folder;
  for (const int64_t no : {0, 1}) {
    GgufWriter writer;
    writer.add("split.no", GgufType::kUint16, {no});
    writer.add("split.count", GgufType::kUint16, {int64_t{2}});
    const std::vector<std::byte> data(4);
    writer.add_tensor(cat("t", no), {DType::kF32, {1}, data});
    writer.write(folder.path(cat("m-0000", no + 1, "-of-00002.gguf")));
  }
  EXPECT_EQ(open_model(folder.path()).tensors().size(), 2u);
}

class HfFolder : public testing::Test {
 protected:
  void SetUp() override {
    folder_.write("config.json", R"({"model_type":"llama","quantization_config":{"bits":4}})");
    folder_.write("model.safetensors", safetensors_of("t"));
  }
  ModelFiles open() { return open_model(folder_.path()); }
  std::string error() { return open_error(folder_.path()); }
  TestFolder folder_;
};

TEST_F(HfFolder, NeedsNoMoreThanConfigAndWeights) {
  const ModelFiles model = open();
  EXPECT_TRUE(model.has_quantization_config());
  EXPECT_TRUE(model.generation_config().entries().empty());
  EXPECT_TRUE(model.tokenizer_json().empty());
  EXPECT_TRUE(model.chat_templates().empty());
  EXPECT_EQ(model.tensor_bytes(), 4);
}

TEST_F(HfFolder, ANullQuantizationConfigIsNone) {
  folder_.write("config.json", R"({"quantization_config":null})");
  EXPECT_FALSE(open().has_quantization_config());
}

TEST_F(HfFolder, TheOnlySafetensorsMayHaveAnyName) {
  std::filesystem::rename(folder_.path("model.safetensors"), folder_.path("weights.safetensors"));
  EXPECT_NE(open().find("t"), nullptr);
  folder_.write("more.safetensors", safetensors_of("u"));
  EXPECT_THAT(error(), HasSubstr("has several .safetensors (more.safetensors, weights.safetensors) but no "
                                 "model.safetensors.index.json"));
}

TEST_F(HfFolder, TemplatesFromTheTokenizerConfig) {
  folder_.write("tokenizer_config.json", R"({"chat_template":"one"})");
  EXPECT_EQ(*open().chat_template(), "one");
  folder_.write("tokenizer_config.json", R"({"chat_template":[{"name":"rag","template":"R"},
                                                              {"name":"default","template":"D"}]})");
  const ModelFiles model = open();
  ASSERT_EQ(model.chat_templates().size(), 2u);
  EXPECT_EQ(model.chat_templates()[0].name, "default");
  EXPECT_EQ(*model.chat_template("rag"), "R");
}

TEST_F(HfFolder, TemplateFilesGoFirst) {
  folder_.write("tokenizer_config.json", R"({"chat_template":"old"})");
  folder_.write("chat_template.jinja", "new");
  folder_.write("additional_chat_templates/tool_use.jinja", "T");
  const ModelFiles model = open();
  EXPECT_EQ(*model.chat_template(), "new");
  EXPECT_EQ(*model.chat_template("tool_use"), "T");
}

TEST_F(HfFolder, BrokenSideFilesAreNamed) {
  folder_.write("tokenizer_config.json", R"({"chat_template":5})");
  EXPECT_THAT(error(), HasSubstr("tokenizer_config.json: chat_template: expected a string or a list"));
  folder_.write("tokenizer_config.json", R"({"chat_template":[{"name":"x"}]})");
  EXPECT_THAT(error(), HasSubstr("tokenizer_config.json: chat_template: an entry without a string \"template\""));
  folder_.write("tokenizer_config.json", "[]");
  EXPECT_THAT(error(), HasSubstr("tokenizer_config.json: found a JSON array, expected an object"));
  folder_.write("tokenizer_config.json", "{");
  EXPECT_THAT(error(), HasSubstr("tokenizer_config.json: byte 2: not JSON"));
  folder_.write("tokenizer_config.json", "{}");
  folder_.write("generation_config.json", "nothing");
  EXPECT_THAT(error(), HasSubstr("generation_config.json: byte 2: not JSON"));
  folder_.write("generation_config.json", "{}");
  folder_.write("config.json", "");
  EXPECT_THAT(error(), HasSubstr("config.json: byte 1: not JSON"));
}

TEST_F(HfFolder, WithoutConfig) {
  std::filesystem::remove(folder_.path("config.json"));
  EXPECT_THAT(error(), HasSubstr("has .safetensors but no config.json; fetch the whole model folder"));
}

TEST_F(HfFolder, WithPickledWeightsOnly) {
  std::filesystem::remove(folder_.path("model.safetensors"));
  EXPECT_THAT(error(), HasSubstr("has no .safetensors or .gguf file; give a .gguf file"));
  folder_.write("pytorch_model.bin", "x");
  EXPECT_THAT(error(), HasSubstr("has its weights in pytorch_model.bin, a PyTorch pickle file"));
}

TEST(ModelFiles, WrongArguments) {
  const TestFolder folder;
  constexpr std::string_view kForms =
      "; give a .gguf file, a model folder (config.json and .safetensors, or one .gguf), hf:ORG/NAME[:FILE] or "
      "pypi:NAME";
  EXPECT_EQ(open_error(folder.path()), cat(folder.path(), ": is empty", kForms));
  EXPECT_EQ(open_error(folder.path("none")), cat(folder.path("none"), ": no such file or folder", kForms));
  EXPECT_EQ(open_error("http:org/model"), cat("http:org/model: no such file or folder", kForms));
  EXPECT_EQ(open_error(""), cat(": no such file or folder", kForms));
  EXPECT_EQ(open_error(folder.write("notes.txt", "hello")), cat(folder.path("notes.txt"), ": is no model", kForms));
  EXPECT_THAT(open_error(folder.write("m.safetensors", "x")), HasSubstr("is one file of a model; give the folder"));
  EXPECT_THAT(open_error(folder.write("config.json", "{}")), HasSubstr("is one file of a model; give the folder"));
  for (const char* name : {"m.bin", "m.pth", "m.pt", "m.ckpt"}) {
    EXPECT_THAT(open_error(folder.write(name, "x")), HasSubstr("PyTorch pickle files are not read")) << name;
  }
  EXPECT_THAT(open_error("/dev/null"), HasSubstr("/dev/null: is a device, expected a file"));
}

}  // namespace
}  // namespace headrace
