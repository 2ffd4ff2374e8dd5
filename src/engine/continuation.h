#pragma once

#include <deque>
#include <optional>
#include <span>
#include <string>

#include "headrace/generation.h"
#include "sample/sampler.h"
#include "sample/stop_matcher.h"
#include "text/detokenizer.h"

namespace headrace {

/// A token as it was sampled.
struct SampledToken {
  TokenId token = kNoToken;
  double logprob = 0;                       ///< where several answers are compared
  std::optional<TokenLogprobs> logprobs{};  ///< where they were asked for
};

/// One answer being written: what chooses its tokens, and what turns them into text, until something ends it.
/// Threading: one thread at a time.
class Continuation {
 public:
  struct Config {
    std::span<const TokenId> end_tokens;  ///< ascending; they live elsewhere
    bool continues_text = false;          ///< the prompt is text that the answer goes on from
    bool compares = false;                ///< cumulative_logprob() is wanted
    int32_t max_tokens = 0;               ///< of the answer, at least 1
  };
  Continuation(SamplingState state, const Tokenizer& tokenizer, const Config& config);
  /// The same answer so far, to be continued as number `choice` of its request.
  [[nodiscard]] Continuation fork(uint32_t choice) const;

  [[nodiscard]] SamplingState& state() noexcept { return state_; }
  [[nodiscard]] int32_t choice() const noexcept { return static_cast<int32_t>(state_.continuation()); }
  [[nodiscard]] int32_t max_tokens() const noexcept { return config_.max_tokens; }
  [[nodiscard]] int32_t num_tokens() const noexcept { return num_tokens_; }
  [[nodiscard]] double cumulative_logprob() const noexcept { return cumulative_logprob_; }

  /// Chooses the token at `position` of the sequence from the model's logits.
  [[nodiscard]] SampledToken sample(Sampler& sampler, std::span<const float> logits, int64_t position);
  /// Takes the next token and adds to `event` what is final now: text, tokens, and the end with its reason. True: the
  /// answer goes on, and needs the token computed.
  [[nodiscard]] bool accept(const SampledToken& sampled, GenerationEvent& event);
  /// Ends the answer early: adds what was held back.
  void end(FinishReason reason, GenerationEvent& event);

 private:
  struct Held {
    TokenId token = 0;
    size_t text_end = 0;  // of the answer's text, with the token
    std::optional<TokenLogprobs> logprobs;
  };
  /// Adds the tokens whose text has been given out.
  void give_out_tokens(GenerationEvent& event);

  SamplingState state_;
  Config config_;
  StreamDetokenizer detokenizer_;
  StopMatcher stop_;
  std::deque<Held> held_;
  size_t text_pushed_ = 0, text_given_ = 0;  // bytes
  int32_t num_tokens_ = 0;
  double cumulative_logprob_ = 0;
};

}  // namespace headrace
