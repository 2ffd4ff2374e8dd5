// headrace run: one answer, or a chat on the terminal.
#include <unistd.h>

#include <array>
#include <cstdio>
#include <sstream>

#include "apps/answer.h"
#include "apps/chat_session.h"
#include "apps/commands.h"
#include "apps/load_flags.h"
#include "apps/parallel_run.h"
#include "apps/structured_flags.h"
#include "base/error.h"
#include "base/options_command_line.h"
#include "files/json_file.h"
#include "sample/sampling_options.h"

namespace headrace {
namespace {

struct RunSettings {
  std::string model;
  std::string prompt;
  std::string template_file;
  LoadOptions load;
  ChatSettings chat;
  StructuredFlags structured;
  int32_t parallel = 0;
};

CommandLine run_command_line(RunSettings& s) {
  std::vector<Option> sampling = sampling_options(s.chat.params);
  for (Option& option : sampling) {
    if (option.name == "temperature")
      option.default_text = "the model's, else 0; 1 where top-k, top-p or min-p is given";
    if (option.name == "top-k" || option.name == "top-p" || option.name == "min-p" ||
        option.name == "repetition-penalty") {
      option.default_text = "the model's, else none";
    }
  }
  return CommandLine(
      "headrace run",
      "Answers a prompt with a model and streams the answer to standard output. Without -p and with a terminal: a chat "
      "with line editing and history. The prompt is standard input where that is no terminal.",
      {{.name = "MODEL", .target = &s.model, .help = kModelHelp}},
      {{"Prompt",
        {{.name = "prompt",
          .letter = 'p',
          .target = &s.prompt,
          .help = "the user's message; - reads it from standard input"},
         {.name = "system", .target = &s.chat.system, .help = "a system message before it"},
         {.name = "raw",
          .target = &s.chat.raw,
          .help = "continue the prompt as it is: no chat template, and names of special tokens count"},
         {.name = "chat-template",
          .target = &s.template_file,
          .value_name = "FILE",
          .help = "a Jinja chat template to use in place of the model's"},
         {.name = "parallel",
          .target = &s.parallel,
          .range = {.min = 0, .max = 65536},
          .value_name = "N",
          .default_text = "off",
          .help = "take each line of the prompt as a prompt of its own and answer N of them at once"},
         {.name = "quiet", .letter = 'q', .target = &s.chat.quiet, .help = "no line of timings at the end"}}},
       {"Sampling", sampling},
       {"Form of the answer", structured_flags(s.structured)},
       {"Loading", load_flags(s.load)},
       {"Serving", serving_flags(s.load)},
       {"Several processes", rank_flags(s.load)}},
      "Sampling follows the model's generation_config.json (temperature, top_k, top_p, min_p, repetition_penalty; "
      "do_sample = false means greedy) wherever no flag is given, and is greedy where the model says nothing.\n"
      "Ctrl-C stops the answer. Exit code: 0, 1 for an error, 2 if some prompts of --parallel failed, 130 if the "
      "answer was stopped by Ctrl-C.");
}

std::string read_standard_input() {
  // More than any model takes at once; an endless stream must not fill the memory.
  constexpr size_t kMostBytes = size_t{256} << 20;
  std::string text;
  std::array<char, 65536> part{};
  while (const size_t count = std::fread(part.data(), 1, part.size(), stdin)) {
    text.append(part.data(), count);
    if (text.size() > kMostBytes) {
      throw Error(ErrorCode::kInvalidArgument,
                  cat("standard input has more than ", kMostBytes >> 20, " MiB; split it into several runs"));
    }
  }
  if (std::ferror(stdin) != 0) throw Error(ErrorCode::kUnavailable, "standard input cannot be read");
  // Shells end what they send with a line end that nobody typed.
  if (text.ends_with('\n')) text.pop_back();
  if (text.empty())
    throw Error(ErrorCode::kInvalidArgument, "the prompt is empty: give one with -p or on standard input");
  return text;
}

/// The model's sampling, changed by the flags.
void choose_sampling(const Model& model, const CommandLine& command, std::span<const std::string> arguments,
                     SamplingParams& params) {
  const SamplingParams defaults = model.default_params();
  // A temperature that no flag can give tells whether one did.
  constexpr float kNotGiven = -1;
  params = defaults;
  params.temperature = kNotGiven;
  (void)command.parse(arguments);
  if (params.temperature != kNotGiven) return;
  const bool asks_for_sampling = params.top_k != defaults.top_k || params.top_p != defaults.top_p ||
                                 params.min_p != defaults.min_p || params.typical_p != defaults.typical_p;
  params.temperature = defaults.temperature > 0 || !asks_for_sampling ? defaults.temperature : 1.0f;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    if (line.find_first_not_of(" \t\r") != std::string::npos) lines.push_back(line);
  }
  return lines;
}

}  // namespace

int command_run(std::span<const std::string> arguments) {
  RunSettings s;
  const CommandLine command = run_command_line(s);
  if (command.parse(arguments) == CommandLine::Outcome::kHelp) {
    std::fputs(command.help().c_str(), stdout);
    return 0;
  }
  check_sampling_params(s.chat.params);
  if (s.chat.raw && !s.chat.system.empty()) {
    throw Error(ErrorCode::kInvalidArgument, "--system: --raw has no messages; leave one of the two out");
  }
  const StructuredOutput structured = read_structured_flags(s.structured);
  if (!s.template_file.empty()) {
    s.load.chat_template = read_text_file(s.template_file);
    if (s.load.chat_template.empty()) throw LoadError(s.template_file, "is empty, expected a Jinja template");
  }
  const bool has_terminal = isatty(STDIN_FILENO) != 0;
  const bool interactive = s.prompt.empty() && has_terminal && s.parallel == 0;
  // Read before the model is loaded: an empty prompt should not cost minutes.
  if (s.prompt == "-" || (s.prompt.empty() && !interactive)) s.prompt = read_standard_input();
  const std::string prompt = s.prompt;
  const std::vector<std::string> prompts = s.parallel > 0 ? lines_of(prompt) : std::vector<std::string>();
  if (s.parallel > 0 && prompts.empty()) {
    throw Error(ErrorCode::kInvalidArgument, "--parallel: the prompt has no line that is not blank");
  }

  // One prompt at a time: no share of a step has to be found by measuring, which would delay the first answer.
  if (s.parallel == 0 && s.load.max_num_batched_tokens == 0) s.load.max_num_batched_tokens = 512;
  auto progress = show_loading(s.model, s.load);
  Model model = Model::load(s.model, s.load);
  progress.reset();
  choose_sampling(model, command, arguments, s.chat.params);
  s.chat.params.structured_output = structured;
  if (!s.chat.raw && !model.has_chat_template()) {
    throw Error(
        ErrorCode::kUnsupported,
        s.model +
            " has no chat template: continue the prompt as it is with --raw, or give one with --chat-template FILE");
  }
  if (interactive) {
    run_chat_session(model, s.chat);
    return 0;
  }
  constexpr int kInterruptedExit = 130;  // as shells count it: 128 + SIGINT
  if (s.parallel > 0) {
    switch (run_parallel(model, s.chat, prompts, s.parallel)) {
      case ParallelOutcome::kAllAnswered:
        return 0;
      case ParallelOutcome::kSomeFailed:
        return 2;
      case ParallelOutcome::kStopped:
        return kInterruptedExit;
    }
  }
  std::vector<Message> messages;
  if (!s.chat.system.empty()) messages.push_back({"system", s.chat.system});
  messages.push_back({"user", prompt});
  const Generation answer = stream_answer(
      [&](const TextSink& sink) {
        return s.chat.raw ? model.generate(prompt, s.chat.params, sink) : model.chat(messages, s.chat.params, sink);
      },
      s.chat.quiet);
  return answer.reason == FinishReason::kCancelled ? kInterruptedExit : 0;
}

}  // namespace headrace
