#pragma once

#include <cstdint>
#include <vector>

namespace headrace {

/// How probable the model takes a token to be: the logarithm of its probability (natural, of the softmax of the
/// model's own logits, before penalties, masks and temperature). -infinity is possible.
struct TokenLogprob {
  int32_t token = 0;
  float logprob = 0;
  int32_t rank = 1;  ///< 1: the most probable; of equal tokens the lower id comes first
};

/// What is known of one place in a text.
struct TokenLogprobs {
  TokenLogprob chosen;                 ///< the token that stands there
  std::vector<TokenLogprob> top = {};  ///< the most probable, the best first; as many as were asked for
};

}  // namespace headrace
