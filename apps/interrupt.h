#pragma once

#include <csignal>

namespace headrace {

/// While it lives, Ctrl-C (SIGINT) is noted instead of ending the program; the third one ends it, in case nobody looks.
/// Guards may be nested: the inner one counts from none.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;
  /// Whether Ctrl-C has come since the last guard was made.
  [[nodiscard]] bool interrupted() const noexcept;

 private:
  struct sigaction before_;
};

}  // namespace headrace
