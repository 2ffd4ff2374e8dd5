#pragma once

#include <cstdint>
#include <functional>
#include <optional>

namespace headrace {

/// Slow and failing steps, for tests of the whole program.
struct StepFaults {
  int64_t failing_step = 0;  ///< its number, from 1; 0: none
  int64_t pause_ms = 0;      ///< before each step
};

/// What HEADRACE_TEST_FAILING_STEP and HEADRACE_TEST_STEP_PAUSE_MS ask for; nullopt: neither is set. Throws Error:
/// not a number from 1 on.
[[nodiscard]] std::optional<StepFaults> step_faults_of_environment();

/// For LoadOptions::fault_injection.
[[nodiscard]] std::function<bool(int64_t step)> fault_injection(StepFaults faults);

}  // namespace headrace
