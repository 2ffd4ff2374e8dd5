#include "client/rate_search.h"

#include <algorithm>

namespace headrace::client {

std::optional<double> RateSearch::next() const {
  if (runs_ >= options_.most_runs) return std::nullopt;
  if (!within_ && rate_ < options_.lowest) return std::nullopt;
  if (!beyond_ && runs_ > 0 && rate_ > options_.highest) return std::nullopt;
  if (within_ && beyond_ && *beyond_ - *within_ <= options_.precision * (1 + 1e-9)) return std::nullopt;
  return rate_;
}

void RateSearch::add(bool is_within) {
  ++runs_;
  if (is_within) {
    within_ = std::max(within_.value_or(rate_), rate_);
  } else {
    beyond_ = std::min(beyond_.value_or(rate_), rate_);
  }
  if (within_ && beyond_) {
    rate_ = (*within_ + *beyond_) / 2;
  } else if (beyond_) {
    rate_ = *beyond_ / 2;
  } else if (runs_ < options_.linear_runs) {
    rate_ += options_.step;
  } else {
    rate_ = *within_ * 2;
  }
}

}  // namespace headrace::client
