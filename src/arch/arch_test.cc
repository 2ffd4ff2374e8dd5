#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <set>

#include "arch/registry.h"
#include "base/error.h"

namespace headrace {
namespace {

const std::string kModels = std::string(HR_TEST_DATA) + "/models/";
const std::string kGguf = std::string(HR_TEST_DATA) + "/gguf/";

ArchSpec spec_of(const std::string& path) { return make_arch_spec(open_model(path)); }

/// A copy of a fixture whose config.json has other text in one place.
class EditedModel {
 public:
  EditedModel(const std::string& name, const std::string& from, const std::string& to)
      : folder_(testing::TempDir() + "arch_" + testing::UnitTest::GetInstance()->current_test_info()->name()) {
    std::filesystem::remove_all(folder_);
    std::filesystem::copy(kModels + name, folder_);
    std::ifstream in(folder_ + "/config.json");
    std::string text((std::istreambuf_iterator<char>(in)), {});
    const size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
    std::filesystem::permissions(folder_ + "/config.json", std::filesystem::perms::owner_all);
    std::ofstream(folder_ + "/config.json") << text;
  }
  ~EditedModel() { std::filesystem::remove_all(folder_); }
  [[nodiscard]] const std::string& path() const { return folder_; }

 private:
  std::string folder_;
};

std::string failure_of(const std::string& path) {
  try {
    (void)spec_of(path);
  } catch (const Error& error) {
    return error.message();
  }
  return "no failure";
}

TEST(Arch, ReadsWhatTheFixturesSay) {
  const ArchSpec llama = spec_of(kModels + "llama");
  EXPECT_EQ(llama.name, "llama");
  EXPECT_EQ(llama.num_layers(), 4);
  EXPECT_FALSE(llama.tied_output);
  EXPECT_EQ(llama.ropes[0].layout, RopeLayout::kHalfSplit);
  EXPECT_EQ(spec_of(kGguf + "llama-F32.gguf").ropes[0].layout, RopeLayout::kInterleaved);

  const ArchSpec mistral = spec_of(kModels + "mistral");
  EXPECT_EQ(mistral.name, "mistral");
  ASSERT_EQ(mistral.cache_groups.size(), 1u);
  EXPECT_EQ(mistral.cache_groups[0].window, 16);

  const ArchSpec qwen3 = spec_of(kModels + "qwen3");
  EXPECT_TRUE(qwen3.layers[0].attention.qk_norm);
  EXPECT_EQ(qwen3.layers[0].attention.head_dim, 32);
  EXPECT_TRUE(spec_of(kModels + "qwen2").layers[0].attention.qkv_bias);
  EXPECT_TRUE(spec_of(kGguf + "qwen2-Q8_0.gguf").layers[0].attention.qkv_bias);
  const ArchSpec biased = spec_of(kModels + "llama-attn-bias");
  EXPECT_TRUE(biased.layers[0].attention.output_bias);
  EXPECT_TRUE(biased.layers[0].feed_forward.bias);
}

TEST(Arch, RopeScalingRules) {
  const std::vector<float> linear = spec_of(kModels + "llama-linear-rope").ropes[0].inv_freq;
  EXPECT_FLOAT_EQ(linear[0], 0.25f);  // factor 4
  const RopeSpec yarn = spec_of(kModels + "llama-yarn").ropes[0];
  EXPECT_FLOAT_EQ(yarn.inv_freq.front(), 1.0f);  // turns often: kept
  EXPECT_FLOAT_EQ(yarn.scale, 0.1f * std::log(4.0f) + 1.0f);
  EXPECT_NE(failure_of(EditedModel("llama-linear-rope", "\"linear\"", "\"dynamic\"").path()).find("'dynamic'"),
            std::string::npos);
  EXPECT_NE(failure_of(EditedModel("llama-linear-rope", "4.0", "0.0").path()).find("rope_scaling.factor"),
            std::string::npos);
}

TEST(Arch, LayersOfTwoWindowsAreTwoGroups) {
  ArchSpec spec = spec_of(kModels + "llama");
  for (size_t i = 0; i < spec.layers.size(); ++i) spec.layers[i].attention.window = i % 2 ? 0 : 1024;
  assign_cache_groups(spec);
  ASSERT_EQ(spec.cache_groups.size(), 2u);
  EXPECT_EQ(spec.cache_groups[0].layers, (std::vector<int32_t>{0, 2}));
  EXPECT_EQ(spec.cache_groups[1].layers, (std::vector<int32_t>{1, 3}));
  EXPECT_EQ(kv_bytes_per_token(spec, spec.cache_groups[1], DType::kF16), 2 * 2 * (16 + 16) * 2);
}

TEST(Arch, ShardsTileEveryTensor) {
  for (const char* name : {"llama", "llama-attn-bias", "mistral", "qwen2", "qwen3"}) {
    const ArchSpec spec = spec_of(kModels + name);
    for (const TensorSpec& tensor : spec.tensors) {
      const int64_t size = tensor.shape.front();
      for (const int32_t ranks : {1, 2, 3, 5}) {
        int64_t next = 0;
        for (int32_t rank = 0; rank < ranks; ++rank) {
          const ShardRange range = shard_range(tensor, rank, ranks);
          EXPECT_EQ(range.begin, tensor.shard == Shard::kCopy ? 0 : next) << tensor.name;
          EXPECT_TRUE(tensor.shard == Shard::kCopy || range.end == size || range.end % tensor.shard_unit == 0);
          next = range.end;
        }
        EXPECT_EQ(next, size) << tensor.name << " over " << ranks;
      }
    }
  }
}

TEST(Arch, SaysWhyLayersCannotBeDivided) {
  ArchSpec spec = spec_of(kModels + "llama");
  EXPECT_NO_THROW(check_ranks(spec, 1));
  EXPECT_NO_THROW(check_ranks(spec, 2));
  const auto refusal = [&](int32_t ranks) {
    try {
      check_ranks(spec, ranks);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("no failure");
  };
  EXPECT_EQ(refusal(3), "the model's 2 KV heads (4 heads) cannot be divided evenly over 3 ranks");
  for (TensorSpec& tensor : spec.tensors) {
    if (tensor.name == "output.weight") tensor.shape[0] = 16;
  }
  EXPECT_EQ(refusal(2), "output.weight: 16 rows are too few for 2 ranks");
}

TEST(Arch, TwoFilesNeverClaimOneName) {
  std::set<std::string_view> hf;
  for (const ArchEntry* arch : all_archs()) {
    for (const std::string_view name : arch->hf) EXPECT_TRUE(hf.insert(name).second) << name;
  }
  EXPECT_GE(hf.size(), 4u);
}

TEST(Arch, SaysWhatDoesNotFit) {
  const auto fails = [](const std::string& model, const std::string& from, const std::string& to,
                        const std::string& words) {
    const std::string message = failure_of(EditedModel(model, from, to).path());
    EXPECT_NE(message.find(words), std::string::npos) << message;
    EXPECT_EQ(message.find('\n'), std::string::npos);
  };
  fails("llama", "LlamaForCausalLM", "MambaForCausalLM", "unknown architecture 'MambaForCausalLM'");
  fails("llama", "\"hidden_size\": 64", "\"hidden_size\": 0", "hidden_size");
  fails("llama", "\"hidden_size\": 64", "\"hidden_size\": 96", "expected [544,96]");
  fails("llama", "\"num_key_value_heads\": 2", "\"num_key_value_heads\": 3", "multiple of the 3 KV heads");
  fails("llama", "\"vocab_size\": 544", "\"vocab_size\": 99999999999", "vocab_size");
  fails("llama", "\"hidden_act\": \"silu\"", "\"hidden_act\": \"relu\"", "hidden_act");
  fails("llama-attn-bias", "\"mlp_bias\": true", "\"mlp_bias\": false", "not a tensor of architecture llama");
  fails("qwen2", "\"vocab_size\"", "\"quantization_config\": {\"quant_method\": \"gptq\"}, \"vocab_size\"", "'gptq'");
  fails("mistral", "\"num_hidden_layers\": 2", "\"num_hidden_layers\": 3", "missing");
}

}  // namespace
}  // namespace headrace
