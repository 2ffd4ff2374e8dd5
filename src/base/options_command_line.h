#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/options.h"

namespace headrace {

/// An argument without a flag. `target`: a text, or a list of texts that takes all that are left.
struct Positional {
  std::string_view name;  ///< "MODEL"
  OptionTarget target;
  bool required = true;
  std::string_view help;
};

/// Options under one heading of the help.
struct OptionGroup {
  std::string_view heading;  ///< "Sampling"
  std::vector<Option> options;
};

/// The arguments of one command.
class CommandLine {
 public:
  /// `command`: "headrace run". `summary`: one sentence or more, for the top of the help. `notes`: for its end.
  CommandLine(std::string command, std::string summary, std::vector<Positional> positionals,
              std::vector<OptionGroup> groups, std::string notes = {});

  enum class Outcome { kRun, kHelp };
  /// Writes what is given into the targets and leaves the others alone; may be called again after defaults have
  /// changed. Accepts --flag value, --flag=value, -f value, --switch, --no-switch, and "--" before arguments that are
  /// no flags. kHelp: --help or -h is among the arguments. Throws Error(kInvalidArgument), one line with the remedy.
  [[nodiscard]] Outcome parse(std::span<const std::string> arguments) const;

  /// Everything there is to know about the command, for lines of `columns` characters.
  [[nodiscard]] std::string help(size_t columns = 100) const;

 private:
  [[nodiscard]] const Option* find(std::string_view name) const noexcept;
  [[nodiscard]] const Option* find(char letter) const noexcept;
  [[noreturn]] void unknown_flag(std::string_view flag) const;
  [[noreturn]] void fail(std::string_view what) const;
  /// Reads the flag at arguments[i]; returns the index of the next argument.
  [[nodiscard]] size_t take_flag(std::span<const std::string> arguments, size_t i,
                                 std::vector<const Option*>& seen) const;
  void take_positionals(std::span<const std::string> texts) const;

  std::string command_;
  std::string summary_;
  std::vector<Positional> positionals_;
  std::vector<OptionGroup> groups_;
  std::string notes_;
};

}  // namespace headrace
