#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace headrace::client {

inline constexpr double kUnlimited = std::numeric_limits<double>::infinity();

/// When requests come, as `vllm bench serve` makes them.
struct ArrivalSpec {
  double rate = kUnlimited;  ///< requests a second; infinite: all at once
  double burstiness = 1;     ///< shape of the gamma distributed gaps; 1: Poisson; infinite: constant gaps
  uint64_t seed = 0;
};

/// Seconds from the start, ascending. The gaps have mean 1 / rate; their sums are stretched so that the last request
/// comes at count / rate. Closed loops are those with an infinite rate and a limited number of clients.
[[nodiscard]] std::vector<double> make_arrivals(const ArrivalSpec& spec, int64_t count);

/// Sums of `gaps`, scaled so that the last one is `last`.
[[nodiscard]] std::vector<double> stretched_sums(std::span<const double> gaps, double last);

}  // namespace headrace::client
