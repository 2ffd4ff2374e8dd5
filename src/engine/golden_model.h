#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/golden_feed.h"

namespace headrace {

/// Logits and greedy continuations that an independent implementation computed for a model: `golden.safetensors` and
/// `golden.json` of its folder, or NAME.golden.* beside NAME.gguf. Format: tests/data/README.md.
struct GoldenModel {
  struct Prompt {
    FedTokens tokens;            ///< the prompt, continued greedily
    std::vector<float> logits;   ///< [prompt tokens, vocabulary]
    std::vector<float> margins;  ///< best logit minus the second one, at each greedy step
    double logits_std = 0;
  };
  std::vector<Prompt> prompts;
  std::optional<double> llama_cpp_diff;  ///< largest difference over std that llama.cpp had
  std::optional<double> bfloat16_diff;   ///< the same of a bfloat16 pass
};

/// Throws LoadError.
[[nodiscard]] GoldenModel load_golden_model(const std::string& safetensors_path, const std::string& json_path);

/// Largest difference over std that numerics may have; nullopt where the golden gives no yardstick.
///   exact: 1e-3, float32 noise being near 1e-5.
///   else: twice what llama.cpp has, where its number is more than float32 noise (where it quantised activations too);
///   else three times the bfloat16 pass.
[[nodiscard]] std::optional<double> golden_tolerance(const GoldenModel& golden, Numerics numerics) noexcept;

/// Runs the model over the golden's prompts and, fed the golden's tokens, its continuations. The best token must be the
/// golden's: with exact numerics at every step, else where the margin exceeds twice the largest error measured.
/// Throws what loading the model throws.
[[nodiscard]] GoldenOutcome run_golden_model(const std::string& name, const GoldenModel& golden,
                                             const ModelFiles& files, const GoldenSetup& setup);

}  // namespace headrace
