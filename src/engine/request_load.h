#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace headrace {

/// A request of a load: lengths only.
struct LoadRequest {
  double arrival = 0;  ///< seconds from the start; in a closed loop, when a client is free instead
  int32_t prompt_tokens = 0;
  int32_t output_tokens = 0;
  bool operator==(const LoadRequest&) const = default;
};

enum class LengthKind {
  kFixed,   ///< all the same
  kNormal,  ///< normally distributed around the mean, standard deviation 0.3 of it, as in the benchmarks of
            ///< DeepSpeed-MII
  kUneven,  ///< a quarter, a half, once and 2.25 times the mean in turn, outputs in another order than prompts
};

struct LoadSpec {
  int32_t requests = 512;
  double rate = 0;  ///< requests a second: exponential gaps, stretched so that the last one comes at requests / rate;
                    ///< 0: all at once
  LengthKind lengths = LengthKind::kFixed;
  int32_t prompt_tokens = 512;  ///< mean
  int32_t output_tokens = 128;  ///< mean
  int32_t max_prompt_tokens = 1 << 20;
  uint64_t seed = 1;
};

/// The same requests for the same spec, anywhere.
[[nodiscard]] std::vector<LoadRequest> make_load(const LoadSpec& spec);

/// Reads a recorded load: CSV lines "arrival,prompt,output" under a line with just these words in any order, or a JSON
/// array of objects with these keys; seconds, tokens, tokens. Sorted by arrival. Throws Error with file and line or
/// entry for anything else.
[[nodiscard]] std::vector<LoadRequest> read_load(const std::string& path);

}  // namespace headrace
