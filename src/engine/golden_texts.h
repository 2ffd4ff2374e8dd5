#pragma once

#include <string>
#include <vector>

#include "engine/golden_feed.h"

namespace headrace {

/// A golden of a model that lies elsewhere, because it is large: `golden.json` with texts, of which some rows have
/// their logits in `golden.safetensors` (float16), and chats with greedy answers. Format: tests/data/README.md.
struct GoldenTexts {
  struct Text {
    FedTokens tokens;           ///< output_from is the first scored row
    std::vector<float> logits;  ///< [scored rows, vocabulary]
    int64_t scored_rows = 0;
  };
  struct Chat {
    FedTokens tokens;
    std::vector<double> margins;
  };
  std::vector<Text> texts;
  std::vector<Chat> chats;
};

/// Whether `json_path` is such a golden rather than a model's own.
[[nodiscard]] bool is_golden_texts(const std::string& json_path);
/// Throws LoadError.
[[nodiscard]] GoldenTexts load_golden_texts(const std::string& safetensors_path, const std::string& json_path);

/// The mean over all scored rows of KL(golden, ours) must be at most 0.0028 nats (llama.cpp, measured on SmolLM2 Q4_1:
/// 0.0024 in one batch, 0.0026 token by token), the best token equal in 57 of 60 of them; fed the golden answers, the
/// best token must be the golden's at each step whose margin is above 0.15. Throws what loading the model throws.
[[nodiscard]] GoldenOutcome run_golden_texts(const std::string& name, const GoldenTexts& golden,
                                             const ModelFiles& files, const GoldenSetup& setup);

/// sum p log(p / q) in nats, p and q being the softmax of the logits, computed in double.
[[nodiscard]] double kl_divergence(std::span<const float> p_logits, std::span<const float> q_logits);

}  // namespace headrace
