#pragma once

#include <span>
#include <vector>

#include "engine/golden_outcome.h"

namespace headrace {

/// Tokens that a model is made to read, whatever it would have said itself.
struct FedTokens {
  std::vector<TokenId> prompt;
  std::vector<TokenId> continuation;  ///< fed one by one; the last one is never read
  int32_t output_from = 0;            ///< first position of the prompt whose logits are wanted
};

/// Logits of one fed sequence: `rows` rows, those of positions output_from, output_from + 1, ...
struct FedLogits {
  std::vector<float> data;
  int64_t width = 0;
  [[nodiscard]] int64_t rows() const noexcept { return width > 0 ? static_cast<int64_t>(data.size()) / width : 0; }
  [[nodiscard]] std::span<const float> row(int64_t i) const noexcept {
    return std::span(data).subspan(static_cast<size_t>(i * width), static_cast<size_t>(width));
  }
};

/// Loads the model in the given setup, with a cache for `sequences`. Throws LoadError and Error.
[[nodiscard]] std::unique_ptr<Engine> golden_engine(const ModelFiles& files, const GoldenSetup& setup,
                                                    std::span<const FedTokens> sequences);

/// The logits of each sequence, in order. Sequences run in the same steps if setup.together, else one after the other.
[[nodiscard]] std::vector<FedLogits> feed(Engine& engine, const GoldenSetup& setup,
                                          std::span<const FedTokens> sequences);

/// Index of the largest value, the first of equals.
[[nodiscard]] TokenId best_token(std::span<const float> logits) noexcept;

/// A hash of the bits of all logits.
[[nodiscard]] uint64_t hash_of(std::span<const FedLogits> logits) noexcept;

}  // namespace headrace
