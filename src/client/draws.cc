#include "client/draws.h"

#include <cmath>
#include <numbers>

namespace headrace::client {

double Draws::normal(int64_t item, int64_t draw) const noexcept {
  return std::sqrt(-2 * std::log1p(-uniform(item, 2 * draw))) *
         std::cos(2 * std::numbers::pi * uniform(item, 2 * draw + 1));
}

double Draws::gamma(double shape, int64_t item) const noexcept {
  if (shape == 1) return -std::log1p(-uniform(item));
  // Below 1 by the next higher shape: G(a) = G(a + 1) U^(1/a), section 6 of the paper.
  const double raised = shape < 1 ? shape + 1 : shape;
  const double d = raised - 1.0 / 3;
  const double c = 1 / std::sqrt(9 * d);
  const double factor = shape < 1 ? std::pow(1 - uniform(item, 0), 1 / shape) : 1;
  for (int64_t attempt = 1;; ++attempt) {
    const double x = normal(item, 2 * attempt);
    const double root = 1 + c * x;
    if (root <= 0) continue;
    const double v = root * root * root;
    const double u = 1 - uniform(item, 4 * attempt + 2);
    if (std::log(u) < x * x / 2 + d - d * v + d * std::log(v)) return d * v * factor;
  }
}

}  // namespace headrace::client
