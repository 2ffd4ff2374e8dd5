#pragma once

namespace headrace {

/// While it lives, Ctrl-C (SIGINT) is noted instead of ending the program; the third one ends it, in case
/// nobody looks. One guard at a time.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;
  /// Whether Ctrl-C has come since the guard was made.
  [[nodiscard]] bool interrupted() const noexcept;
};

}  // namespace headrace
