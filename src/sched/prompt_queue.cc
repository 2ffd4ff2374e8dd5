#include "sched/prompt_queue.h"

#include <tuple>

#include "base/check.h"

namespace headrace {

void PromptQueue::push(Sequence& sequence) {
  const TenantId tenant = sequence.spec.tenant;
  Level& level = levels_[sequence.spec.priority];
  const auto [entry, is_new] = level.tenants.try_emplace(tenant);
  if (is_new) {
    entry->second.served = tenants_->served(tenant);
    level.order.emplace(entry->second.served, tenant);
  }
  entry->second.sequences.emplace(sequence.arrival, &sequence);
  by_arrival_.emplace(sequence.arrival, &sequence);
  const bool runs = sequence.state() == SequenceState::kRunning;
  sequence.queued_tokens = runs ? sequence.remaining() : sequence.length();
  tokens_ += sequence.queued_tokens;
}

void PromptQueue::erase(Sequence& sequence) {
  const auto level = levels_.find(sequence.spec.priority);
  HR_CHECK(level != levels_.end(), "sequence ", raw(sequence.id), " is not queued");
  const auto tenant = level->second.tenants.find(sequence.spec.tenant);
  HR_CHECK(tenant != level->second.tenants.end(), "sequence ", raw(sequence.id), " is not queued");
  tenant->second.sequences.erase(sequence.arrival);
  by_arrival_.erase(sequence.arrival);
  tokens_ -= sequence.queued_tokens;
  if (!tenant->second.sequences.empty()) return;
  level->second.order.erase({tenant->second.served, tenant->first});
  level->second.tenants.erase(tenant);
  if (level->second.tenants.empty()) levels_.erase(level);
}

Sequence* PromptQueue::front() {
  if (levels_.empty()) return nullptr;
  Level& level = levels_.begin()->second;
  // What a tenant had only grows, so the order holds lower bounds: the first whose bound is exact is the least.
  for (;;) {
    const auto [bound, tenant] = *level.order.begin();
    TenantQueue& queue = level.tenants.at(tenant);
    const double served = tenants_->served(tenant);
    if (bound == served) return queue.sequences.begin()->second;
    level.order.erase(level.order.begin());
    queue.served = served;
    level.order.emplace(served, tenant);
  }
}

bool PromptQueue::goes_before(const Sequence& a, const Sequence& b) const {
  const auto key = [&](const Sequence& sequence) {
    return std::tuple(sequence.spec.priority, tenants_->served(sequence.spec.tenant), sequence.arrival);
  };
  return key(a) < key(b);
}

Sequence* PromptQueue::oldest() const noexcept { return by_arrival_.empty() ? nullptr : by_arrival_.begin()->second; }

}  // namespace headrace
