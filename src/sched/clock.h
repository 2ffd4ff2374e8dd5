#pragma once

namespace headrace {

/// The time that scheduling goes by: the machine's own, or a simulation's.
class Clock {
 public:
  virtual ~Clock() = default;
  /// Seconds since some fixed moment; never falls.
  [[nodiscard]] virtual double now() const = 0;
};

}  // namespace headrace
