#include "sample/sampling_options.h"

#include <string>
#include <string_view>

#include "base/cat.h"
#include "base/error.h"

namespace headrace {

std::vector<Option> sampling_options(SamplingParams& params) {
  return {
      {.name = "temperature",
       .target = &params.temperature,
       .range = {.min = 0, .max = 100},
       .help = "divides the logits; 0 takes the best token always (greedy)"},
      {.name = "top-k", .target = &params.top_k, .range = {.min = -1}, .help = "keep the N best tokens; 0 or -1: all"},
      {.name = "top-p",
       .target = &params.top_p,
       .range = {.min = 0, .max = 1, .above_min = true},
       .help = "keep the best tokens whose probabilities reach X together"},
      {.name = "min-p",
       .target = &params.min_p,
       .range = {.min = 0, .max = 1},
       .help = "drop tokens with less than X times the best one's probability"},
      {.name = "typical-p",
       .target = &params.typical_p,
       .range = {.min = 0, .max = 1, .above_min = true},
       .help =
           "keep the tokens whose surprise is nearest to what is expected and whose probabilities reach X together"},
      {.name = "repetition-penalty",
       .target = &params.repetition_penalty,
       .range = {.min = 0, .max = 100, .above_min = true},
       .help = "divides positive logits of tokens in prompt and answer, multiplies negative ones; 1: none"},
      {.name = "presence-penalty",
       .target = &params.presence_penalty,
       .range = {.min = -2, .max = 2},
       .help = "taken from the logit of each token that the answer holds"},
      {.name = "frequency-penalty",
       .target = &params.frequency_penalty,
       .range = {.min = -2, .max = 2},
       .help = "taken from the logit for each time that the answer holds the token"},
      {.name = "seed",
       .target = &params.seed,
       .default_text = "random",
       .help = "the same seed gives the same answer, on every machine"},
      {.name = "max-tokens",
       .letter = 'n',
       .target = &params.max_tokens,
       .range = {.min = 0},
       .help = "longest answer in tokens; 0: as long as the context allows"},
      {.name = "min-tokens",
       .target = &params.min_tokens,
       .range = {.min = 0},
       .help = "shortest answer in tokens: nothing ends it before"},
      {.name = "ignore-eos", .target = &params.ignore_eos, .help = "go on after the end-of-text token"},
      {.name = "stop", .target = &params.stop, .help = "text that ends the answer and is not part of it"},
      {.name = "stop-token-ids",
       .target = &params.stop_token_ids,
       .range = {.min = 0},
       .help = "tokens that end the answer"},
      {.name = "include-stop-str-in-output",
       .target = &params.include_stop_str_in_output,
       .help = "what ended the answer is part of it"},
      {.name = "allowed-token-ids",
       .target = &params.allowed_token_ids,
       .range = {.min = 0},
       .help = "the only tokens that may be chosen"},
  };
}

namespace {

/// Parameters that only requests have, as they are no flags of a single answer.
std::vector<Option> request_options(SamplingParams& params, int32_t& logprobs, int32_t& prompt_logprobs) {
  constexpr double kMostLogprobs = 20, kMostAnswers = 128;
  return {
      {.name = "n", .target = &params.n, .range = {.min = 1, .max = kMostAnswers}, .help = ""},
      {.name = "best-of", .target = &params.best_of, .range = {.min = 0, .max = kMostAnswers}, .help = ""},
      {.name = "logprobs", .target = &logprobs, .range = {.min = 0, .max = kMostLogprobs}, .help = ""},
      {.name = "prompt-logprobs", .target = &prompt_logprobs, .range = {.min = 0, .max = kMostLogprobs}, .help = ""},
  };
}

[[noreturn]] void refuse(std::string_view parameter, const std::string& what) {
  throw ParameterError(std::string(parameter), cat(parameter, ": ", what));
}

void check_row(const Option& option) {
  const std::string name = option_key(option);
  try {
    check_option(option, name);
  } catch (const Error& error) {
    throw ParameterError(name, error.message());
  }
}

}  // namespace

void check_sampling_params(const SamplingParams& params) {
  SamplingParams copy = params;  // the rows want something that they could write to
  int32_t logprobs = params.logprobs.value_or(0), prompt_logprobs = params.prompt_logprobs.value_or(0);
  for (const Option& option : sampling_options(copy)) check_row(option);
  for (const Option& option : request_options(copy, logprobs, prompt_logprobs)) check_row(option);
  for (const std::string& stop : params.stop) {
    if (stop.empty()) refuse("stop", "an empty text would end every answer at once");
  }
  for (const auto& [token, bias] : params.logit_bias) {
    if (!(bias >= -100 && bias <= 100))
      refuse("logit_bias", cat(bias, " for token ", token, " is not from -100 to 100"));
  }
  for (const std::vector<int32_t>& word : params.bad_words) {
    if (word.empty()) refuse("bad_words", "a word of no tokens");
  }
  if (params.best_of != 0 && params.best_of < params.n) {
    refuse("best_of", cat(params.best_of, " is less than n, ", params.n));
  }
  if (params.max_tokens != 0 && params.min_tokens > params.max_tokens) {
    refuse("min_tokens", cat(params.min_tokens, " is more than max_tokens, ", params.max_tokens));
  }
}

void check_sampling_tokens(const SamplingParams& params, int32_t vocab_size) {
  const auto check = [&](std::string_view name, int32_t token) {
    if (token < 0 || token >= vocab_size) {
      refuse(name, cat("token ", token, " is not in the vocabulary of ", vocab_size, " tokens"));
    }
  };
  for (const auto& [token, bias] : params.logit_bias) check("logit_bias", token);
  for (const int32_t token : params.allowed_token_ids) check("allowed_token_ids", token);
  for (const int32_t token : params.stop_token_ids) check("stop_token_ids", token);
  for (const std::vector<int32_t>& word : params.bad_words) {
    for (const int32_t token : word) check("bad_words", token);
  }
}

}  // namespace headrace
