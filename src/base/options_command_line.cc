#include "base/options_command_line.h"

#include <algorithm>

#include "base/cat.h"
#include "base/error.h"
#include "base/options_nearest.h"

namespace headrace {
namespace {

/// Whether the argument is meant as a flag: "-" stands for standard input and "-1.5" is a number.
bool looks_like_flag(std::string_view argument) {
  if (argument.size() < 2 || argument[0] != '-') return false;
  return argument[1] < '0' || argument[1] > '9';
}

}  // namespace

CommandLine::CommandLine(std::string command, std::string summary, std::vector<Positional> positionals,
                         std::vector<OptionGroup> groups, std::string notes)
    : command_(std::move(command)),
      summary_(std::move(summary)),
      positionals_(std::move(positionals)),
      groups_(std::move(groups)),
      notes_(std::move(notes)) {}

const Option* CommandLine::find(std::string_view name) const noexcept {
  for (const OptionGroup& group : groups_) {
    for (const Option& option : group.options) {
      if (option.name == name) return &option;
    }
  }
  return nullptr;
}

const Option* CommandLine::find(char letter) const noexcept {
  for (const OptionGroup& group : groups_) {
    for (const Option& option : group.options) {
      if (option.letter == letter) return &option;
    }
  }
  return nullptr;
}

void CommandLine::fail(std::string_view what) const {
  throw Error(ErrorCode::kInvalidArgument, cat(what, " (", command_, " --help lists the flags)"));
}

void CommandLine::unknown_flag(std::string_view flag) const {
  std::vector<std::string_view> names{"help"};
  for (const OptionGroup& group : groups_) {
    for (const Option& option : group.options) names.push_back(option.name);
  }
  const std::string_view typed = flag.substr(std::min(flag.find_first_not_of('-'), flag.size()));
  const std::string_view nearest = nearest_name(typed, names);
  fail(cat("unknown flag ", printable(flag), nearest.empty() ? "" : cat("; did you mean --", nearest, "?")));
}

size_t CommandLine::take_flag(std::span<const std::string> arguments, size_t i,
                              std::vector<const Option*>& seen) const {
  const std::string_view argument = arguments[i];
  const size_t equals = argument.find('=');
  const std::string_view flag = argument.substr(0, equals);
  const bool is_long = flag.starts_with("--");
  const Option* option = is_long ? find(flag.substr(2)) : flag.size() == 2 ? find(flag[1]) : nullptr;
  if (option == nullptr && flag.starts_with("--no-")) {
    const Option* negated = find(flag.substr(5));
    if (negated != nullptr && is_switch(*negated)) {
      if (equals != std::string_view::npos) fail(cat(flag, " takes no value"));
      *std::get<bool*>(negated->target) = false;
      return i + 1;
    }
  }
  if (option == nullptr) unknown_flag(flag);

  if (is_switch(*option)) {
    if (equals != std::string_view::npos) {
      fail(cat(flag, " takes no value: write --", option->name, " or --no-", option->name));
    }
    *std::get<bool*>(option->target) = true;
    return i + 1;
  }

  const bool is_first = std::ranges::find(seen, option) == seen.end();
  if (is_first) {
    seen.push_back(option);
    if (auto* const* list = std::get_if<std::vector<std::string>*>(&option->target)) (*list)->clear();
  }
  if (equals != std::string_view::npos) {
    set_option(*option, argument.substr(equals + 1), flag);
    return i + 1;
  }
  if (i + 1 >= arguments.size()) fail(cat(flag, " needs a value: ", accepted_text(*option)));
  if (arguments[i + 1].starts_with("--")) {
    fail(cat(flag, " needs a value, found ", printable(arguments[i + 1]), "; if that is the value, write ", flag, "=",
             printable(arguments[i + 1])));
  }
  set_option(*option, arguments[i + 1], flag);
  i += 2;
  while (option->many && i < arguments.size() && !looks_like_flag(arguments[i])) {
    set_option(*option, arguments[i++], flag);
  }
  return i;
}

void CommandLine::take_positionals(std::span<const std::string> texts) const {
  size_t used = 0;
  for (const Positional& positional : positionals_) {
    if (auto* const* list = std::get_if<std::vector<std::string>*>(&positional.target)) {
      (*list)->assign(texts.begin() + static_cast<std::ptrdiff_t>(used), texts.end());
      if (used == texts.size() && positional.required) fail(cat(positional.name, " is missing: ", positional.help));
      used = texts.size();
    } else if (used < texts.size()) {
      *std::get<std::string*>(positional.target) = texts[used++];
    } else if (positional.required) {
      fail(cat(positional.name, " is missing: ", positional.help));
    }
  }
  if (used < texts.size()) {
    fail(cat("unexpected argument '", printable(texts[used]), "'; quote a text that holds blanks"));
  }
}

CommandLine::Outcome CommandLine::parse(std::span<const std::string> arguments) const {
  std::vector<std::string> texts;
  std::vector<const Option*> seen;
  // First of all, so that help comes whatever else is wrong.
  for (const std::string& argument : arguments) {
    if (argument == "--") break;
    if (argument == "--help" || argument == "-h") return Outcome::kHelp;
  }
  for (size_t i = 0; i < arguments.size();) {
    if (arguments[i] == "--") {
      texts.insert(texts.end(), arguments.begin() + static_cast<std::ptrdiff_t>(i) + 1, arguments.end());
      break;
    }
    if (looks_like_flag(arguments[i])) {
      i = take_flag(arguments, i, seen);
    } else {
      texts.push_back(arguments[i++]);
    }
  }
  take_positionals(texts);
  return Outcome::kRun;
}

}  // namespace headrace
