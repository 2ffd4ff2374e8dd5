#include <algorithm>

#include "base/cat.h"
#include "base/options_command_line.h"

namespace headrace {
namespace {

/// Appends `text` broken at blanks into lines that begin at column `indent`; the first line is already that far.
/// Line ends in the text are kept.
void append_wrapped(std::string& out, std::string_view text, size_t indent, size_t columns) {
  const size_t width = std::max<size_t>(20, columns > indent ? columns - indent : 0);
  bool first = true;
  while (first || !text.empty()) {
    size_t length = std::min(text.size(), width);
    const size_t line_end = text.substr(0, length).find('\n');
    if (line_end != std::string_view::npos) {
      length = line_end;
    } else if (length < text.size() && text[length] != ' ' && text[length] != '\n') {
      const size_t blank = text.substr(0, length).rfind(' ');
      if (blank != std::string_view::npos && blank > 0) length = blank;
    }
    if (!first && length > 0) out.append(indent, ' ');
    out += text.substr(0, length);
    out += '\n';
    text.remove_prefix(length);
    if (!text.empty() && (text.front() == ' ' || text.front() == '\n')) text.remove_prefix(1);
    first = false;
  }
}

std::string value_name(const Option& option) {
  if (!option.value_name.empty()) return std::string(option.value_name);
  struct Visitor {
    std::string operator()(const bool*) const { return ""; }
    std::string operator()(const int32_t*) const { return "N"; }
    std::string operator()(const int64_t*) const { return "N"; }
    std::string operator()(const float*) const { return "X"; }
    std::string operator()(const double*) const { return "X"; }
    std::string operator()(const std::string*) const { return "TEXT"; }
    std::string operator()(const std::optional<uint64_t>*) const { return "N"; }
    std::string operator()(const std::vector<std::string>*) const { return "TEXT"; }
    std::string operator()(const std::vector<int32_t>*) const { return "N,..."; }
    std::string operator()(const std::vector<double>*) const { return "X,..."; }
  };
  return std::visit(Visitor{}, option.target);
}

std::string flag_text(const Option& option) {
  std::string text = option.letter != 0 ? cat("-", std::string(1, option.letter), ", ") : "    ";
  text += cat("--", option.name);
  const std::string value = value_name(option);
  if (!value.empty()) text += cat(" ", value);
  return text;
}

/// Help sentence, accepted values and default of one option.
std::string description(const Option& option) {
  std::string text(option.help);
  const bool has_range = option.range.min != OptionRange{}.min || option.range.max != OptionRange{}.max;
  if (has_range || !option.choices.empty()) text += cat("; ", accepted_text(option));
  const bool is_list_of_texts = std::holds_alternative<std::vector<std::string>*>(option.target);
  if (is_list_of_texts && option.choices.empty() && !option.many) text += "; may be given several times";
  const std::string value = default_text(option);
  if (!value.empty()) text += cat(" [default: ", value, "]");
  return text;
}

void append_row(std::string& out, std::string_view left, std::string_view right, size_t left_width, size_t columns) {
  out += cat("  ", left);
  const size_t width = left.size();
  if (width > left_width) {
    out += '\n';
    out.append(left_width + 4, ' ');
  } else {
    out.append(left_width - width + 2, ' ');
  }
  append_wrapped(out, right, left_width + 4, columns);
}

}  // namespace

std::string CommandLine::help(size_t columns) const {
  // Long flags get a line of their own, or one of them would push every description to the right.
  constexpr size_t kMaxLeft = 30;
  size_t left = std::string_view("-h, --help").size();
  for (const Positional& p : positionals_) left = std::max(left, p.name.size());
  for (const OptionGroup& group : groups_) {
    for (const Option& option : group.options) {
      const size_t width = flag_text(option).size();
      if (width <= kMaxLeft) left = std::max(left, width);
    }
  }

  std::string out = cat("Usage: ", command_, " [FLAGS]");
  for (const Positional& p : positionals_) {
    const bool is_list = std::holds_alternative<std::vector<std::string>*>(p.target);
    const std::string name = cat(p.name, is_list ? "..." : "");
    out += p.required ? cat(" ", name) : cat(" [", name, "]");
  }
  out += "\n\n";
  append_wrapped(out, summary_, 0, columns);
  if (!positionals_.empty()) out += "\nArguments:\n";
  for (const Positional& p : positionals_) append_row(out, p.name, p.help, left, columns);
  for (const OptionGroup& group : groups_) {
    out += cat("\n", group.heading, ":\n");
    for (const Option& option : group.options) append_row(out, flag_text(option), description(option), left, columns);
  }
  out += "\nOther:\n";
  append_row(out, "-h, --help", "print this and exit", left, columns);
  if (!notes_.empty()) {
    out += '\n';
    append_wrapped(out, notes_, 0, columns);
  }
  return out;
}

}  // namespace headrace
