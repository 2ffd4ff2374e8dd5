// What it costs to turn a token's event into a chunk of a stream. A server with 32 streams makes 32 of them for each
// step of the model.
#include <fmt/core.h>

#include <chrono>

#include "openai/stream_writer.h"

using namespace headrace;
using namespace headrace::openai;

namespace {

AnswerPlan plan(bool is_chat) {
  AnswerPlan plan{.head = {.id = "chatcmpl-req-0123456789abcdef01234567",
                           .model = "SmolLM2-135M-Instruct",
                           .created = 1'800'000'000,
                           .fingerprint = "fp_0123456789abcdef"},
                  .common = {},
                  .names = {.bytes = [](int32_t) { return std::string(" token"); }},
                  .is_chat = is_chat};
  plan.echoed.resize(1);
  return plan;
}

void measure(const char* what, const AnswerPlan& plan, bool with_logprobs) {
  constexpr int kChunks = 200'000;
  const std::string texts[] = {" the", " \"quoted\"", "\n", " 你好", " responsibility", "."};
  StreamWriter writer(plan);
  std::string out;
  size_t bytes = 0;
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < kChunks; ++i) {
    GenerationEvent event{.text = texts[static_cast<size_t>(i) % std::size(texts)], .tokens = {i}};
    event.usage = {.prompt_tokens = 100, .completion_tokens = i};
    if (with_logprobs) event.logprobs = {{.chosen = {.token = i, .logprob = -1}}};
    out.clear();
    writer.add(0, std::move(event), out);
    bytes += out.size();
  }
  const std::chrono::duration<double, std::nano> taken = std::chrono::steady_clock::now() - begin;
  fmt::print("{:<28} {:>8.0f} {:>12}\n", what, taken.count() / kChunks, bytes / kChunks);
}

}  // namespace

int main() {
  fmt::print("                             ns each  bytes each\n");
  measure("chat", plan(true), false);
  measure("text", plan(false), false);
  AnswerPlan usage = plan(true);
  usage.common.include_usage = usage.common.continuous_usage = true;
  measure("chat, running usage", usage, false);
  AnswerPlan logprobs = plan(true);
  logprobs.common.sampling.logprobs = 0;
  measure("chat, logprobs", logprobs, true);
}
