#pragma once

#include <cstddef>
#include <unordered_map>

#include "sched/sequence.h"

namespace headrace {

/// What each tenant was given of late, so that the one that had least goes next. A tenant that comes, or comes back,
/// starts no lower than those that are served now: nobody saves up a claim by asking for nothing.
class TenantAccounts {
 public:
  /// A sequence of the tenant came or went.
  void enter(TenantId tenant);
  void leave(TenantId tenant);
  /// A row of the tenant that costs `seconds` went into a step.
  void charge(TenantId tenant, double seconds) { accounts_[tenant].served += seconds; }
  /// What a tenant with sequences had; never falls while it has any.
  [[nodiscard]] double served(TenantId tenant) const;
  /// The tenant that had `served` was the next one: all who come later start there.
  void advance(double served) noexcept { floor_ = served > floor_ ? served : floor_; }
  [[nodiscard]] size_t size() const noexcept { return accounts_.size(); }

 private:
  struct Account {
    double served = 0;
    int64_t sequences = 0;
  };
  void forget_settled();

  std::unordered_map<TenantId, Account> accounts_;
  double floor_ = 0;
  size_t forget_at_ = 64;
};

}  // namespace headrace
