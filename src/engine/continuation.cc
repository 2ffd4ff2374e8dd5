#include "engine/continuation.h"

#include <algorithm>

namespace headrace {

Continuation::Continuation(SamplingState state, const Tokenizer& tokenizer, const Config& config)
    : state_(std::move(state)),
      config_(config),
      detokenizer_(tokenizer, {.skip_special = state_.params().skip_special_tokens,
                               .shown_special = state_.params().shown_special_tokens,
                               // A blank that a grammar asks for is part of the answer wherever it stands.
                               .continues_text = config.continues_text || state_.has_grammar()}),
      stop_(state_.params().stop, state_.params().include_stop_str_in_output) {}

Continuation Continuation::fork(uint32_t choice) const {
  Continuation child = *this;
  child.state_ = state_.fork(choice);
  return child;
}

SampledToken Continuation::sample(Sampler& sampler, std::span<const float> logits, int64_t position) {
  SampledToken sampled{.token = sampler.sample(logits, state_, position)};
  const std::optional<int32_t> top = state_.params().logprobs;
  if (sampled.token == kNoToken || !(top || config_.compares)) return sampled;
  TokenLogprobs logprobs;
  sampler.logprobs(logits, sampled.token, top.value_or(0), logprobs);
  sampled.logprob = static_cast<double>(logprobs.chosen.logprob);
  if (top) sampled.logprobs = std::move(logprobs);
  return sampled;
}

bool Continuation::accept(const SampledToken& sampled, GenerationEvent& event) {
  const SamplingParams& params = state_.params();
  ++num_tokens_;
  cumulative_logprob_ += sampled.logprob;
  const bool may_stop = state_.may_stop();
  state_.accept(sampled.token);

  const bool ends_text = !params.ignore_eos && std::ranges::binary_search(config_.end_tokens, sampled.token);
  const bool stops = std::ranges::find(params.stop_token_ids, sampled.token) != params.stop_token_ids.end();
  if ((ends_text || stops) && !params.include_stop_str_in_output) {
    event.stop_cause.token = sampled.token;
    end(FinishReason::kStop, event);
    return false;
  }
  const std::string piece = detokenizer_.push(sampled.token);
  text_pushed_ += piece.size();
  held_.push_back({sampled.token, text_pushed_, sampled.logprobs});
  const std::string final_text = may_stop ? stop_.push(piece) : stop_.pass(piece);
  text_given_ += final_text.size();
  event.text += final_text;
  if (stop_.stopped()) {
    event.stop_cause.text = params.stop[*stop_.found()];
    event.finish_reason = FinishReason::kStop;
    give_out_tokens(event);
    return false;
  }
  if (ends_text || stops) event.stop_cause.token = sampled.token;
  if (ends_text || stops || state_.is_finished()) {
    end(FinishReason::kStop, event);
    return false;
  }
  if (num_tokens_ == config_.max_tokens) {
    end(FinishReason::kLength, event);
    return false;
  }
  give_out_tokens(event);
  return true;
}

void Continuation::end(FinishReason reason, GenerationEvent& event) {
  // What was held back as half a character or as the possible beginning of a stop text.
  const std::string rest = stop_.push(detokenizer_.finish()) + stop_.finish();
  event.text += rest;
  text_given_ = std::max(text_pushed_, text_given_ + rest.size());
  event.finish_reason = reason;
  give_out_tokens(event);
}

void Continuation::give_out_tokens(GenerationEvent& event) {
  while (!held_.empty() && held_.front().text_end <= text_given_) {
    event.tokens.push_back(held_.front().token);
    if (held_.front().logprobs) event.logprobs.push_back(std::move(*held_.front().logprobs));
    held_.pop_front();
  }
}

}  // namespace headrace
