#pragma once

#include <optional>

namespace headrace::client {

/// Looks for the highest request rate at which a server stays within limits, after KsanaLLM's throughput benchmark:
/// linear steps first; then doubles while within, or halves while not; then bisects between the highest rate within
/// and the lowest one beyond, down to a difference of `precision`.
class RateSearch {
 public:
  struct Options {
    double first = 1;     ///< requests a second
    double step = 1;      ///< of the linear part
    int linear_runs = 1;  ///< runs of the linear part; it ends early at the first run beyond the limits
    double precision = 0.1;
    double lowest = 0.1;   ///< no rate below is tried,
    double highest = 1e4;  ///< nor one above
    int most_runs = 32;
  };
  explicit RateSearch(Options options) : options_(options), rate_(options.first) {}

  /// The rate to try next; nullopt: the search is over.
  [[nodiscard]] std::optional<double> next() const;
  /// Whether the run at next() stayed within the limits.
  void add(bool within);
  /// Highest rate that was within.
  [[nodiscard]] std::optional<double> best() const noexcept { return within_; }

 private:
  Options options_;
  double rate_;
  int runs_ = 0;
  std::optional<double> within_, beyond_;
};

}  // namespace headrace::client
