#include "sample/sampling_options.h"

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
      {.name = "ignore-eos", .target = &params.ignore_eos, .help = "go on after the end-of-text token"},
      {.name = "stop", .target = &params.stop, .help = "text that ends the answer and is not part of it"},
  };
}

void check_sampling_params(const SamplingParams& params) {
  SamplingParams copy = params;  // the rows want something that they could write to
  for (const Option& option : sampling_options(copy)) check_option(option, option_key(option));
  for (const std::string& stop : params.stop) {
    if (stop.empty()) throw Error(ErrorCode::kInvalidArgument, "stop: an empty text would end every answer at once");
  }
}

}  // namespace headrace
