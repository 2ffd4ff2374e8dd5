#include "client/arrivals.h"

#include <cmath>

#include "client/draws.h"

namespace headrace::client {

std::vector<double> stretched_sums(std::span<const double> gaps, double last) {
  std::vector<double> sums;
  double sum = 0;
  for (const double gap : gaps) sums.push_back(sum += gap);
  if (sum > 0) {
    for (double& at : sums) at *= last / sum;
  }
  return sums;
}

std::vector<double> make_arrivals(const ArrivalSpec& spec, int64_t count) {
  std::vector<double> gaps(static_cast<size_t>(count), 0.0);
  if (std::isinf(spec.rate)) return gaps;
  const Draws draws{.seed = spec.seed, .kind = DrawKind::kGap};
  for (int64_t i = 0; i < count; ++i) {
    const double mean_one = std::isinf(spec.burstiness) ? 1 : draws.gamma(spec.burstiness, i) / spec.burstiness;
    gaps[static_cast<size_t>(i)] = mean_one / spec.rate;
  }
  return stretched_sums(gaps, static_cast<double>(count) / spec.rate);
}

}  // namespace headrace::client
