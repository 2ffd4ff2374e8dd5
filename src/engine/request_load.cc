#include "engine/request_load.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "sample/philox.h"

namespace headrace {
namespace {

/// Numbers of one kind, each from its own stream, by the request's index.
enum class Stream : uint32_t { kGap, kPrompt, kPromptAngle, kOutput, kOutputAngle };

double uniform(const LoadSpec& spec, Stream stream, size_t index) {
  return uniform_at(spec.seed, static_cast<uint32_t>(stream), static_cast<int64_t>(index));
}

/// Standard normal (Box and Muller, 1958).
double normal(const LoadSpec& spec, Stream radius, Stream angle, size_t index) {
  return std::sqrt(-2 * std::log1p(-uniform(spec, radius, index))) *
         std::cos(2 * std::numbers::pi * uniform(spec, angle, index));
}

int32_t length(double tokens, int32_t most) {
  return static_cast<int32_t>(std::clamp<double>(std::round(tokens), 1, most));
}

LoadRequest request_at(const LoadSpec& spec, size_t index) {
  constexpr double kShares[] = {0.25, 0.5, 1, 2.25};  // mean 1
  double prompt = spec.prompt_tokens;
  double output = spec.output_tokens;
  if (spec.lengths == LengthKind::kNormal) {
    prompt *= 1 + 0.3 * normal(spec, Stream::kPrompt, Stream::kPromptAngle, index);
    output *= 1 + 0.3 * normal(spec, Stream::kOutput, Stream::kOutputAngle, index);
  } else if (spec.lengths == LengthKind::kUneven) {
    prompt *= kShares[index % 4];
    output *= kShares[(index + index / 4 + 2) % 4];
  }
  return {.arrival = 0,
          .prompt_tokens = length(prompt, spec.max_prompt_tokens),
          .output_tokens = length(output, std::numeric_limits<int32_t>::max())};
}

}  // namespace

std::vector<LoadRequest> make_load(const LoadSpec& spec) {
  std::vector<LoadRequest> load;
  double at = 0;
  for (size_t i = 0; i < static_cast<size_t>(spec.requests); ++i) {
    load.push_back(request_at(spec, i));
    at += -std::log1p(-uniform(spec, Stream::kGap, i));
    load.back().arrival = at;
  }
  const double last = spec.rate > 0 ? spec.requests / spec.rate : 0;
  for (LoadRequest& request : load) request.arrival *= last / at;
  return load;
}

}  // namespace headrace
