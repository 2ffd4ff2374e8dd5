#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "server/key_ring.h"

namespace headrace::server {

/// Holds callers to their limits: requests a minute as a bucket of tokens that holds ten seconds' worth (one at least),
/// and requests at once. Threading: every function from any thread.
class CallerLimiter {
 public:
  using Time = std::chrono::steady_clock::time_point;

  /// A place among a caller's requests at once; gives it back when destroyed, also after the limiter.
  class Ticket {
   public:
    Ticket() = default;
    Ticket(Ticket&&) noexcept = default;
    Ticket& operator=(Ticket&&) noexcept = default;

   private:
    friend class CallerLimiter;
    explicit Ticket(std::shared_ptr<void> place) : place_(std::move(place)) {}
    std::shared_ptr<void> place_;
  };

  CallerLimiter();
  /// Throws StatusError 429 `quota` with the time after which the request would be taken. Of a request that is refused
  /// nothing is counted.
  [[nodiscard]] Ticket admit(const std::string& caller, const CallerLimits& limits,
                             Time now = std::chrono::steady_clock::now());

 private:
  struct Accounts;
  std::shared_ptr<Accounts> accounts_;
};

}  // namespace headrace::server
