#include "sample/token_filters.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "sample/token_mask.h"

namespace headrace {
namespace {

void ban(TokenId token, std::span<float> logits) noexcept {
  const auto id = static_cast<size_t>(token);
  if (id < logits.size()) logits[id] = -std::numeric_limits<float>::infinity();
}

class AllowedTokens final : public LogitProcessor {
 public:
  explicit AllowedTokens(std::span<const TokenId> tokens) {
    for (const TokenId token : tokens) add_token(mask_, token);
  }
  [[nodiscard]] std::unique_ptr<LogitProcessor> clone() const override {
    return std::make_unique<AllowedTokens>(*this);
  }
  void apply(std::span<float> logits) override { keep_only(mask_, logits); }
  void accept(TokenId) override {}

 private:
  TokenMask mask_;
};

class BadWords final : public LogitProcessor {
 public:
  explicit BadWords(const std::vector<std::vector<TokenId>>& words) : words_(words) {
    for (const std::vector<TokenId>& word : words_) most_before_ = std::max(most_before_, word.size() - 1);
  }
  [[nodiscard]] std::unique_ptr<LogitProcessor> clone() const override { return std::make_unique<BadWords>(*this); }
  void apply(std::span<float> logits) override {
    for (const std::vector<TokenId>& word : words_) {
      const size_t before = word.size() - 1;
      if (before > newest_.size()) continue;
      if (std::equal(word.begin(), word.end() - 1, newest_.end() - static_cast<std::ptrdiff_t>(before))) {
        ban(word.back(), logits);
      }
    }
  }
  void accept(TokenId token) override {
    newest_.push_back(token);
    if (newest_.size() > most_before_) newest_.erase(newest_.begin());
  }

 private:
  std::vector<std::vector<TokenId>> words_;
  size_t most_before_ = 0;
  std::vector<TokenId> newest_;  // the answer's last tokens, most_before_ at most
};

class MinTokens final : public LogitProcessor {
 public:
  MinTokens(int32_t missing, std::vector<TokenId> end_tokens) : missing_(missing), end_tokens_(std::move(end_tokens)) {}
  [[nodiscard]] std::unique_ptr<LogitProcessor> clone() const override { return std::make_unique<MinTokens>(*this); }
  void apply(std::span<float> logits) override {
    if (missing_ <= 0) return;
    for (const TokenId token : end_tokens_) ban(token, logits);
  }
  void accept(TokenId) override { missing_ -= missing_ > 0 ? 1 : 0; }

 private:
  int32_t missing_;
  std::vector<TokenId> end_tokens_;
};

class LogitBias final : public LogitProcessor {
 public:
  explicit LogitBias(const std::map<TokenId, float>& bias) : bias_(bias.begin(), bias.end()) {}
  [[nodiscard]] std::unique_ptr<LogitProcessor> clone() const override { return std::make_unique<LogitBias>(*this); }
  void apply(std::span<float> logits) override {
    for (const auto& [token, bias] : bias_) {
      if (static_cast<size_t>(token) < logits.size()) logits[static_cast<size_t>(token)] += bias;
    }
  }
  void accept(TokenId) override {}

 private:
  std::vector<std::pair<TokenId, float>> bias_;
};

}  // namespace

std::unique_ptr<LogitProcessor> make_allowed_tokens(std::span<const TokenId> tokens) {
  return std::make_unique<AllowedTokens>(tokens);
}

std::unique_ptr<LogitProcessor> make_bad_words(const std::vector<std::vector<TokenId>>& words) {
  return std::make_unique<BadWords>(words);
}

std::unique_ptr<LogitProcessor> make_min_tokens(int32_t min_tokens, std::vector<TokenId> end_tokens) {
  return std::make_unique<MinTokens>(min_tokens, std::move(end_tokens));
}

std::unique_ptr<LogitProcessor> make_logit_bias(const std::map<TokenId, float>& bias) {
  return std::make_unique<LogitBias>(bias);
}

}  // namespace headrace
