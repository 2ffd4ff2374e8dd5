#include "sample/penalties.h"

#include <algorithm>

#include "sample/token_counts.h"

namespace headrace {
namespace {

class Penalties final : public LogitProcessor {
 public:
  Penalties(const SamplingParams& params, std::span<const TokenId> prompt)
      : repetition_(params.repetition_penalty),
        frequency_(params.frequency_penalty),
        presence_(params.presence_penalty) {
    constexpr int32_t kMostReserved = 16384;  // longer answers allocate again on the way
    counts_.reserve(prompt.size() + static_cast<size_t>(std::clamp(params.max_tokens, 0, kMostReserved)));
    for (const TokenId token : prompt) counts_.add_prompt(token);
  }
  [[nodiscard]] std::unique_ptr<LogitProcessor> clone() const override { return std::make_unique<Penalties>(*this); }
  void apply(std::span<float> logits) override {
    counts_.for_each([&](const TokenCounts::Entry& entry) {
      const auto id = static_cast<size_t>(entry.token);
      if (id >= logits.size()) return;
      float& logit = logits[id];
      logit = logit > 0 ? logit / repetition_ : logit * repetition_;
      if (entry.in_answer > 0) {
        logit -= frequency_ * static_cast<float>(entry.in_answer);
        logit -= presence_;
      }
    });
  }
  void accept(TokenId token) override { counts_.add_answer(token); }

 private:
  float repetition_, frequency_, presence_;
  TokenCounts counts_;
};

}  // namespace

bool has_penalties(const SamplingParams& params) noexcept {
  return params.repetition_penalty != 1.0f || params.presence_penalty != 0.0f || params.frequency_penalty != 0.0f;
}

std::unique_ptr<LogitProcessor> make_penalties(const SamplingParams& params, std::span<const TokenId> prompt) {
  return std::make_unique<Penalties>(params, prompt);
}

}  // namespace headrace
