#include "openai/common_fields.h"

#include <algorithm>
#include <limits>

namespace headrace::openai {
namespace {

constexpr int32_t kMaxInt = std::numeric_limits<int32_t>::max();

void read_stream_options(const Fields& body, CommonFields& common) {
  common.stream = body.boolean("stream").value_or(false);
  const Json* options = body.object("stream_options");
  if (options == nullptr) return;
  if (!common.stream) body.refuse("stream_options", "to be absent unless stream is true");
  const Fields fields(*options, "stream_options");
  common.include_usage = fields.boolean("include_usage").value_or(false);
  common.continuous_usage = fields.boolean("continuous_usage_stats").value_or(false);
}

}  // namespace

CommonFields read_common(const Fields& body, const SamplingParams& defaults, const RequestLimits& limits,
                         int32_t default_max_tokens) {
  refuse_unsupported(body);
  CommonFields common;
  common.model = body.string("model").value_or("");
  common.sampling = read_sampling(body, defaults, limits);
  common.sampling.structured_output = read_structured_output(body);
  // A default does not stand against what is asked for.
  common.sampling.max_tokens = default_max_tokens > 0 ? std::max(default_max_tokens, common.sampling.min_tokens) : 0;
  // The newer name wins; n_predict is llama.cpp's, where -1 means no limit.
  if (const auto n = body.integer("n_predict", -1, kMaxInt)) {
    common.sampling.max_tokens = static_cast<int32_t>(std::max<int64_t>(*n, 0));
    common.score_only = *n == 0;
  }
  for (const char* name : {"max_tokens", "max_completion_tokens"}) {
    if (const auto n = body.integer(name, 0, kMaxInt)) {
      common.sampling.max_tokens = static_cast<int32_t>(*n);
      common.score_only = *n == 0;
    }
  }
  read_stream_options(body, common);
  common.return_token_ids = body.boolean("return_token_ids").value_or(false);
  common.return_tokens_as_token_ids = body.boolean("return_tokens_as_token_ids").value_or(false);
  common.timings_per_token = body.boolean("timings_per_token").value_or(false);
  common.timings = body.boolean("timings").value_or(common.timings_per_token);
  if (const auto priority = body.integer("priority", std::numeric_limits<int32_t>::min(), kMaxInt)) {
    common.priority = static_cast<int32_t>(*priority);
  }
  common.bad_words = body.strings("bad_words");
  common.cache_salt = body.string("cache_salt").value_or("");
  common.request_id = body.string("request_id").value_or("");
  if (const auto n = body.integer("truncate_prompt_tokens", 1, kMaxInt)) {
    common.truncate_prompt_tokens = static_cast<int32_t>(*n);
  }
  return common;
}

}  // namespace headrace::openai
