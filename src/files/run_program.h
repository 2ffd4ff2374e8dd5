#pragma once

#include <string>
#include <vector>

namespace headrace {

struct ProgramResult {
  int exit_code = 0;  ///< 128 + signal where one ended it
  std::string text;   ///< what it wrote to the captured stream, at most 64 KiB
};
enum class Capture { kStdout, kStderr };

/// Runs argv[0], found by PATH, with no input and waits for it. The stream that is not captured goes to our standard
/// error, where a user sees progress. No shell is involved. Throws Error(kUnavailable) where it cannot be started.
[[nodiscard]] ProgramResult run_program(const std::vector<std::string>& argv, Capture capture);

}  // namespace headrace
