#pragma once

#include <span>
#include <string>
#include <string_view>

namespace headrace {

/// The commands: each reads its arguments (without program and command name), does its work and returns the exit code.
/// Everything that goes wrong is thrown as Error and ends in exit code 1.
int command_run(std::span<const std::string> arguments);
int command_serve(std::span<const std::string> arguments);
int command_worker(std::span<const std::string> arguments);
int command_rank(std::span<const std::string> arguments);
int command_batch(std::span<const std::string> arguments);
int command_inspect(std::span<const std::string> arguments);
int command_bench(std::span<const std::string> arguments);
int command_tune(std::span<const std::string> arguments);
int command_plan(std::span<const std::string> arguments);
int command_simulate(std::span<const std::string> arguments);
int command_eval(std::span<const std::string> arguments);

struct Command {
  std::string_view name;
  std::string_view summary;
  int (*main)(std::span<const std::string> arguments);
};
[[nodiscard]] std::span<const Command> all_commands() noexcept;

/// "headrace 0.1.0 (Release, GNU 12.2.0)"
[[nodiscard]] std::string version_text();

}  // namespace headrace
