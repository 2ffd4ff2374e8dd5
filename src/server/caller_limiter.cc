#include "server/caller_limiter.h"

#include <algorithm>
#include <map>
#include <mutex>

#include "base/cat.h"
#include "server/error_reply.h"

namespace headrace::server {
namespace {

struct Account {
  int32_t running = 0;
  double tokens = 0;  // requests that may come at once
  CallerLimiter::Time counted_at{};
  bool is_new = true;
};

StatusError over_quota(double retry_after_seconds, std::string message) {
  return StatusError(
      {.status = 429, .type = "rate_limit_error", .code = "quota", .retry_after_seconds = retry_after_seconds},
      std::move(message));
}

}  // namespace

/// One for each caller's name; names come from the file of keys, so there are few.
struct CallerLimiter::Accounts {
  std::mutex mutex;
  std::map<std::string, Account> by_name;
};

CallerLimiter::CallerLimiter() : accounts_(std::make_shared<Accounts>()) {}

CallerLimiter::Ticket CallerLimiter::admit(const std::string& caller, const CallerLimits& limits, Time now) {
  if (limits == CallerLimits()) return {};
  const std::scoped_lock lock(accounts_->mutex);
  Account& account = accounts_->by_name[caller];
  if (limits.concurrent_requests > 0 && account.running >= limits.concurrent_requests) {
    // When one of them ends is not known.
    throw over_quota(1, cat("caller \"", caller, "\" has ", account.running, " requests running, as many as its key ",
                            "allows; wait for one of them"));
  }
  if (limits.requests_per_minute > 0) {
    const double per_second = limits.requests_per_minute / 60;
    const double most = std::max(per_second * 10, 1.0);
    const double passed = std::chrono::duration<double>(now - account.counted_at).count();
    const double tokens = account.is_new ? most : std::min(account.tokens + std::max(passed, 0.0) * per_second, most);
    if (tokens < 1) {
      throw over_quota((1 - tokens) / per_second, cat("caller \"", caller, "\" has sent more than the ",
                                                      limits.requests_per_minute, " requests a minute of its key"));
    }
    account.tokens = tokens - 1;
    account.counted_at = now;
    account.is_new = false;
  }
  if (limits.concurrent_requests == 0) return {};
  ++account.running;
  // Accounts are never erased: the pointer stays good as long as the map does, which the deleter keeps.
  return Ticket(std::shared_ptr<void>(&account, [accounts = accounts_](void* place) {
    const std::scoped_lock giving_back(accounts->mutex);
    --static_cast<Account*>(place)->running;
  }));
}

}  // namespace headrace::server
