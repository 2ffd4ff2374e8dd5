// The same logits, bit for bit, however the work is cut: prompts into chunks, layers into stages, rows into steps,
// operators over threads and instruction sets, and on a device that the host cannot touch.
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <numeric>
#include <set>

#include "base/test_walk.h"
#include "engine/engine.h"
#include "model/product_recipe.h"

namespace headrace {
namespace {

const std::string kData = HR_TEST_DATA;

/// Small models of every architecture and of every way of computing: float weights, 32-blocks, K-quants.
std::vector<std::string> models() {
  // What sanitizers look for is the same for models that are computed alike.
  if (!takes_all_cases()) {
    std::printf("left out: models that are computed like others\n");
    return {kData + "/models/mistral", kData + "/gguf/llama-256-Q4_K_M.gguf", kData + "/gguf/llama-Q8_0.gguf"};
  }
  std::vector<std::string> paths;
  for (const char* name : {"llama", "llama-attn-bias", "llama-draft", "llama-linear-rope", "llama-tied-bf16",
                           "llama3-rope", "llama-yarn", "mistral", "qwen2", "qwen3"}) {
    paths.push_back(kData + "/models/" + name);
  }
  for (const char* name : {"llama-256-Q4_K_M", "llama-F32", "llama-Q8_0", "qwen2-F32", "qwen2-Q8_0"}) {
    paths.push_back(kData + "/gguf/" + name + ".gguf");
  }
  return paths;
}

std::vector<TokenId> prompt_of(int32_t length, int32_t seed) {
  std::vector<TokenId> tokens;
  for (int32_t i = 0; i < length; ++i) tokens.push_back((i * i * 7 + seed * 131 + i * 3) % 512);
  return tokens;
}

/// Logits of every position, by sequence, of all prompts run together.
using Logits = std::vector<std::vector<float>>;
Logits run(Engine& engine, const std::vector<std::vector<TokenId>>& prompts) {
  std::map<SequenceId, size_t> which;
  Logits logits(prompts.size());
  for (size_t i = 0; i < prompts.size(); ++i) {
    const auto id = engine.start(prompts[i], static_cast<int32_t>(prompts[i].size()), 0);
    if (!id) throw Error(ErrorCode::kOutOfMemory, "no room in the cache");
    which[*id] = i;
  }
  while (const StepResult* result = engine.step()) {
    for (size_t i = 0; i < result->outputs.size(); ++i) {
      std::vector<float>& to = logits[which.at(result->outputs[i].sequence)];
      const auto width = static_cast<size_t>(result->width);
      EXPECT_EQ(static_cast<size_t>(result->outputs[i].position), to.size() / width);
      to.insert(to.end(), result->data.begin() + static_cast<std::ptrdiff_t>(i * width),
                result->data.begin() + static_cast<std::ptrdiff_t>((i + 1) * width));
    }
  }
  for (const auto& [id, i] : which) engine.finish(id);
  return logits;
}

/// Whether bits are equal; NaN never is.
bool same(const std::vector<float>& a, const std::vector<float>& b) {
  return !a.empty() && a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0 &&
         std::none_of(a.begin(), a.end(), [](float v) { return v != v; });
}

struct Case {
  std::string model;
  Numerics numerics;
  std::optional<DType> kv_dtype{};  ///< none: what the engine chooses
};

std::string case_name(const testing::TestParamInfo<Case>& info) {
  std::string name = info.param.model.substr(info.param.model.rfind('/') + 1);
  for (char& c : name) {
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  }
  name = cat(name, "_", numerics_name(info.param.numerics));
  return info.param.kv_dtype ? cat(name, "_", kv_dtype_name(*info.param.kv_dtype)) : name;
}

class Sameness : public testing::TestWithParam<Case> {
 protected:
  Sameness() : files_(open_model(GetParam().model)) {
    base_ = {.isa = best_isa(),
             .numerics = GetParam().numerics,
             .kv_dtype = GetParam().kv_dtype,
             .threads = 1,
             .max_model_len = 96,
             .max_num_seqs = 8};
    prompts_ = {prompt_of(37, 1), prompt_of(1, 2), prompt_of(18, 3)};
    static std::map<std::string, Logits> wanted;
    want_ = &wanted[case_name({GetParam(), 0})];
    if (!want_->empty()) return;
    Engine engine(files_, base_);
    for (const auto& prompt : prompts_) want_->push_back(run(engine, {prompt})[0]);
  }

  void expect_same(const EngineConfig& config, const std::string& what) {
    Engine engine(files_, config);
    const Logits together = run(engine, prompts_);
    for (size_t i = 0; i < prompts_.size(); ++i)
      EXPECT_TRUE(same(together[i], want_->at(i))) << what << ", prompt " << i;
  }

  ModelFiles files_;
  EngineConfig base_;
  std::vector<std::vector<TokenId>> prompts_;
  Logits* want_;  ///< of each prompt alone; computed once for all tests of a case
};

TEST_P(Sameness, TogetherAndInChunks) {
  expect_same(base_, "together");
  for (const int32_t chunk : {1, 3, 7}) {
    EngineConfig config = base_;
    config.max_chunk_tokens = chunk;
    expect_same(config, cat("chunks of ", chunk));
  }
  EngineConfig small = base_;
  small.max_step_tokens = 20;  // prompts are cut where the step is full
  expect_same(small, "steps of 20 tokens");
}

TEST_P(Sameness, OnEveryInstructionSetAndThreadCount) {
  for (const Isa isa : kAllIsas) {
    if (!machine_has(isa)) {
      std::printf("sameness: %s not run, this machine lacks it\n", std::string(isa_name(isa)).c_str());
      continue;
    }
    for (const int threads : {1, 2}) {
      EngineConfig config = base_;
      config.isa = isa;
      config.threads = threads;
      expect_same(config, cat(isa_name(isa), " with ", threads, " threads"));
    }
  }
}

TEST_P(Sameness, InAnyNumberOfStages) {
  const ArchSpec spec = make_arch_spec(files_);
  std::vector<std::vector<StageUnits>> cuts;
  for (int32_t stages = 2; stages <= spec.num_layers(); ++stages) cuts.push_back(even_cut(spec, stages));
  const int32_t end = kSublayers * spec.num_layers();
  std::vector<StageUnits>& sublayers = cuts.emplace_back();
  for (int32_t i = 0; i < end; ++i) {
    sublayers.push_back({.embedding = i == 0, .first_sublayer = i, .end_sublayer = i + 1, .output = i + 1 == end});
  }
  // Embedding and output alone, as on a head that holds no layer.
  cuts.push_back({{.embedding = true, .first_sublayer = 0, .end_sublayer = 0, .output = false},
                  {.embedding = false, .first_sublayer = 0, .end_sublayer = end, .output = false},
                  {.embedding = false, .first_sublayer = end, .end_sublayer = end, .output = true}});
  for (const auto& cut : cuts) {
    EngineConfig config = base_;
    config.stages = cut;
    expect_same(config, cat(cut.size(), " stages"));
  }
}

TEST_P(Sameness, OnADeviceThatTheHostCannotTouch) {
  EngineConfig config = base_;
  config.backend = BackendKind::kFakedev;
  expect_same(config, "fakedev");
}

/// How everything in a model is computed.
std::string recipes_of(const ModelFiles& files, Numerics numerics) {
  const ArchSpec spec = make_arch_spec(files);
  std::string text = cat(kv_dtype_name(choose_kv_dtype(numerics, files, spec)));
  for (const TensorSpec& tensor : spec.tensors) {
    const MatmulRecipe* recipe = product_recipe(spec, tensor, numerics, find_spec_tensor(files, tensor).dtype);
    text += cat(" ", recipe != nullptr ? recipe_text(*recipe) : "none");
  }
  return text;
}

/// Each model under every kind of numerics that is not for this model the same as another one.
std::vector<Case> cases() {
  std::vector<Case> all;
  for (const std::string& model : models()) {
    const ModelFiles files = open_model(model);
    std::set<std::string> seen;
    for (const Numerics numerics : kAllNumerics) {
      if (seen.insert(recipes_of(files, numerics)).second) all.push_back({model, numerics});
    }
  }
  // Caches that are not chosen unasked; the choice covers f32 and f16.
  for (const DType dtype : {DType::kBF16, DType::kI8}) {
    all.push_back({kData + "/gguf/qwen2-Q8_0.gguf", Numerics::kPortable, dtype});
    all.push_back({kData + "/models/mistral", Numerics::kPortable, dtype});
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Models, Sameness, testing::ValuesIn(cases()), case_name);

}  // namespace
}  // namespace headrace
