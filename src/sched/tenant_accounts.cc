#include "sched/tenant_accounts.h"

#include <algorithm>

#include "base/check.h"

namespace headrace {

void TenantAccounts::enter(TenantId tenant) {
  if (accounts_.size() >= forget_at_) forget_settled();
  Account& account = accounts_[tenant];
  if (account.sequences++ == 0) account.served = std::max(account.served, floor_);
}

void TenantAccounts::leave(TenantId tenant) {
  const auto found = accounts_.find(tenant);
  HR_CHECK(found != accounts_.end() && found->second.sequences > 0, "tenant ", raw(tenant), " has no sequence");
  --found->second.sequences;
}

double TenantAccounts::served(TenantId tenant) const {
  const auto found = accounts_.find(tenant);
  return found == accounts_.end() ? floor_ : found->second.served;
}

/// Tenants without sequences that would start at the floor anyway need no account.
void TenantAccounts::forget_settled() {
  std::erase_if(accounts_,
                [&](const auto& entry) { return entry.second.sequences == 0 && entry.second.served <= floor_; });
  forget_at_ = std::max<size_t>(64, 2 * accounts_.size());
}

}  // namespace headrace
