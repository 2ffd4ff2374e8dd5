#include "sched/prompt_queue.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

namespace headrace {
namespace {

struct Queue {
  TenantAccounts tenants;
  PromptQueue queue{tenants};
  std::vector<std::unique_ptr<Sequence>> sequences;

  Sequence& push(uint64_t id, TenantId tenant, int32_t priority = 0) {
    sequences.push_back(std::make_unique<Sequence>(
        SequenceId{id}, sequences.size() + 1,
        SequenceSpec{.tokens = {1, 2}, .max_len = 2, .priority = priority, .tenant = tenant}));
    tenants.enter(tenant);
    queue.push(*sequences.back());
    return *sequences.back();
  }
  uint64_t pop(double cost) {
    Sequence& front = *queue.front();
    queue.erase(front);
    tenants.advance(tenants.served(front.spec.tenant));
    tenants.charge(front.spec.tenant, cost);
    return raw(front.id);
  }
};

constexpr TenantId kA{1};
constexpr TenantId kB{2};
constexpr TenantId kC{3};

TEST(PromptQueue, PicksTheTenantThatWasServedLeast) {
  Queue q;
  for (uint64_t id : {1, 2, 3}) q.push(id, kA);
  for (uint64_t id : {11, 12, 13}) q.push(id, kB);
  EXPECT_EQ(q.pop(1), 1u);
  EXPECT_EQ(q.pop(5), 11u);  // costs as much as all of the first tenant's
  EXPECT_EQ(q.pop(1), 2u);
  EXPECT_EQ(q.pop(1), 3u);
  EXPECT_EQ(q.pop(1), 12u);
  EXPECT_EQ(q.queue.size(), 1u);
  EXPECT_EQ(q.queue.tokens(), 2);
}

TEST(PromptQueue, ATenantThatWasAwayHasSavedUpNothing) {
  Queue q;
  for (uint64_t id : {1, 2, 3, 4}) q.push(id, kA);
  q.pop(10);
  q.pop(10);
  for (uint64_t id : {21, 22, 23}) q.push(id, kC);
  EXPECT_EQ(q.pop(9), 21u);  // starts where the first one was when it was served last, at 10
  EXPECT_EQ(q.pop(9), 22u);
  EXPECT_EQ(q.pop(1), 3u);
}

TEST(PromptQueue, PrioritiesGoFirstAndTheOldestIsKnown) {
  Queue q;
  q.push(1, kA, 3);
  q.push(2, kB, 1);
  q.push(3, kA, 1);
  EXPECT_EQ(raw(q.queue.oldest()->id), 1u);
  EXPECT_EQ(q.pop(1), 3u);  // the tenant with the lower number where both were served alike
  EXPECT_EQ(q.pop(1), 2u);
  EXPECT_EQ(q.pop(1), 1u);
  EXPECT_EQ(q.queue.front(), nullptr);
  EXPECT_EQ(q.queue.oldest(), nullptr);
}

TEST(TenantAccounts, ForgetsTenantsThatCame) {
  TenantAccounts accounts;
  for (uint32_t i = 0; i < 10000; ++i) {
    accounts.enter(TenantId{i});
    accounts.charge(TenantId{i}, 1);
    accounts.advance(accounts.served(TenantId{i}));
    accounts.leave(TenantId{i});
  }
  EXPECT_LT(accounts.size(), 1000u);
}

}  // namespace
}  // namespace headrace
