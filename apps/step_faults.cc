#include "apps/step_faults.h"

#include <charconv>
#include <chrono>
#include <cstdlib>
#include <string_view>
#include <thread>

#include "base/cat.h"
#include "base/error.h"

namespace headrace {
namespace {

/// 0: not set.
int64_t number_of(const char* variable) {
  const char* const value = std::getenv(variable);
  if (value == nullptr) return 0;
  const std::string_view text = value;
  int64_t number = 0;
  const auto [stop, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (code != std::errc{} || stop != text.data() + text.size() || number < 1) {
    throw Error(ErrorCode::kInvalidArgument, cat(variable, ": '", printable(text), "' is not a number from 1 on"));
  }
  return number;
}

}  // namespace

std::optional<StepFaults> step_faults_of_environment() {
  const StepFaults faults{.failing_step = number_of("HEADRACE_TEST_FAILING_STEP"),
                          .pause_ms = number_of("HEADRACE_TEST_STEP_PAUSE_MS")};
  if (faults.failing_step == 0 && faults.pause_ms == 0) return std::nullopt;
  return faults;
}

std::function<bool(int64_t)> fault_injection(StepFaults faults) {
  return [faults](int64_t step) {
    std::this_thread::sleep_for(std::chrono::milliseconds(faults.pause_ms));
    return step == faults.failing_step;
  };
}

}  // namespace headrace
