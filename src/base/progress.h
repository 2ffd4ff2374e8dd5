#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace headrace {

/// Where progress is shown.
struct ProgressOutput {
  bool is_terminal = false;
  int32_t columns = 80;
  std::function<void(std::string_view)> write;

  /// Standard error.
  [[nodiscard]] static ProgressOutput standard_error();
};

enum class ProgressUnit : uint8_t { kShare, kBytes };

/// One line that shows how far a piece of work is: label, bar, per cent and rate on a terminal, redrawn at most ten
/// times a second and wiped by the destructor; elsewhere a plain line every 30 seconds, so that short work leaves no
/// trace and logs stay short.
class ProgressLine {
 public:
  using Clock = std::function<std::chrono::steady_clock::time_point()>;

  /// `total`: the amount that is all, above 0.
  ProgressLine(std::string label, double total, ProgressUnit unit, ProgressOutput output, Clock clock);
  /// On standard error.
  ProgressLine(std::string label, double total, ProgressUnit unit);
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  /// `done` of `total` is done.
  void update(double done);

 private:
  [[nodiscard]] std::string line(double share, double seconds, double done) const;

  std::string label_;
  double total_;
  ProgressUnit unit_;
  ProgressOutput output_;
  Clock clock_;
  std::chrono::steady_clock::time_point start_;
  std::chrono::steady_clock::time_point shown_at_;
  bool is_drawn_ = false;
};

}  // namespace headrace
