#include "sample/sampling_state.h"

#include <utility>
#include <vector>

#include "sample/grammar_processor.h"
#include "sample/penalties.h"
#include "sample/token_filters.h"

namespace headrace {

SamplingState::SamplingState(const SamplingParams& params, uint64_t seed, uint32_t continuation,
                             std::span<const TokenId> prompt, std::span<const TokenId> end_tokens,
                             std::optional<GrammarMatcher> grammar, std::optional<OutputGate> gate)
    : params_(params), seed_(seed), continuation_(continuation) {
  if (grammar) grammar_ = std::make_unique<GrammarProcessor>(*std::move(grammar), std::move(gate));
  if (!params.allowed_token_ids.empty()) add(make_allowed_tokens(params.allowed_token_ids));
  if (!params.bad_words.empty()) add(make_bad_words(params.bad_words));
  if (params.min_tokens > 0) {
    std::vector<TokenId> ends(end_tokens.begin(), end_tokens.end());
    ends.insert(ends.end(), params.stop_token_ids.begin(), params.stop_token_ids.end());
    add(make_min_tokens(params.min_tokens, std::move(ends)));
  }
  if (!params.logit_bias.empty()) add(make_logit_bias(params.logit_bias));
  if (has_penalties(params)) add(make_penalties(params, prompt));
}

SamplingState::SamplingState(const SamplingState& other)
    : params_(other.params_),
      seed_(other.seed_),
      continuation_(other.continuation_),
      num_accepted_(other.num_accepted_),
      grammar_(other.grammar_ ? std::make_unique<GrammarProcessor>(*other.grammar_) : nullptr),
      others_(other.others_) {}

SamplingState::SamplingState(SamplingState&&) noexcept = default;
SamplingState& SamplingState::operator=(SamplingState&&) noexcept = default;
SamplingState::~SamplingState() = default;

SamplingState SamplingState::fork(uint32_t continuation) const {
  SamplingState copy = *this;
  copy.continuation_ = continuation;
  return copy;
}

void SamplingState::prepare() {
  if (grammar_) grammar_->prepare();
  others_.prepare();
}

void SamplingState::accept(TokenId token) {
  ++num_accepted_;
  if (grammar_) grammar_->accept(token);
  others_.accept(token);
}

bool SamplingState::has_grammar() const noexcept { return grammar_ != nullptr && grammar_->binds(); }

bool SamplingState::has_processors() const noexcept {
  return (grammar_ != nullptr && grammar_->is_active()) || !others_.empty();
}

void SamplingState::apply(std::span<float> logits) {
  if (grammar_) grammar_->apply(logits);
  others_.apply(logits);
}

bool SamplingState::is_finished() const noexcept { return grammar_ != nullptr && grammar_->is_finished(); }

std::string SamplingState::failure() const { return grammar_ ? grammar_->failure() : std::string(); }

}  // namespace headrace
