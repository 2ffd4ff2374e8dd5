#include "apps/answer.h"

#include <fmt/format.h>

#include <cstdio>

#include "apps/interrupt.h"

namespace headrace {

std::string timing_text(const Generation& answer) {
  std::string text = fmt::format("prompt {} tokens", answer.prompt_tokens);
  if (answer.first_token_seconds > 0) {
    text += fmt::format(", {:.1f} tok/s", answer.prompt_tokens / answer.first_token_seconds);
  }
  text += fmt::format("; answer {} tokens", answer.completion_tokens);
  // The first token comes with the prompt.
  const double seconds = answer.total_seconds - answer.first_token_seconds;
  if (answer.completion_tokens > 1 && seconds > 0) {
    text += fmt::format(", {:.1f} tok/s", (answer.completion_tokens - 1) / seconds);
  }
  if (answer.completion_tokens > 0) text += fmt::format("; first token after {:.2f} s", answer.first_token_seconds);
  if (answer.reason != FinishReason::kStop) text += fmt::format("; ended by {}", finish_reason_name(answer.reason));
  return text;
}

Generation stream_answer(const std::function<Generation(const TextSink&)>& generate, bool quiet) {
  const InterruptGuard guard;
  const Generation answer = generate([&](std::string_view piece) {
    std::fwrite(piece.data(), 1, piece.size(), stdout);
    if (!piece.empty() && std::fflush(stdout) != 0) return false;  // nobody reads any more
    return !guard.interrupted();
  });
  if (answer.text.empty() || answer.text.back() != '\n') std::fputc('\n', stdout);
  std::fflush(stdout);
  if (!quiet) fmt::print(stderr, "[{}]\n", timing_text(answer));
  return answer;
}

}  // namespace headrace
