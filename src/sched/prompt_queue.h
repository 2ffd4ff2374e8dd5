#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <utility>

#include "sched/sequence.h"
#include "sched/tenant_accounts.h"

namespace headrace {

/// Sequences with prompts to compute, in the order in which they go: by priority, then the tenant that was served
/// least, then first come. All operations are O(log n). Borrows the sequences.
class PromptQueue {
 public:
  explicit PromptQueue(const TenantAccounts& tenants) : tenants_(&tenants) {}

  void push(Sequence& sequence);
  void erase(Sequence& sequence);
  /// nullptr: empty.
  [[nodiscard]] Sequence* front();
  /// Whether `a`, the front of some queue, goes before `b`, the front of another one.
  [[nodiscard]] bool goes_before(const Sequence& a, const Sequence& b) const;
  /// The one that came first, whatever its priority; nullptr: empty.
  [[nodiscard]] Sequence* oldest() const noexcept;
  [[nodiscard]] size_t size() const noexcept { return by_arrival_.size(); }
  /// To be computed of all sequences, when they were pushed.
  [[nodiscard]] int64_t tokens() const noexcept { return tokens_; }

 private:
  using ByArrival = std::map<uint64_t, Sequence*>;
  struct TenantQueue {
    ByArrival sequences;
    double served = 0;  ///< as `order` has it: what the tenant had at some time, or a bit less than it has now
  };
  struct Level {
    std::map<TenantId, TenantQueue> tenants;
    std::set<std::pair<double, TenantId>> order;
  };

  const TenantAccounts* tenants_;
  std::map<int32_t, Level> levels_;  ///< by priority; none is empty
  ByArrival by_arrival_;
  int64_t tokens_ = 0;
};

}  // namespace headrace
