#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "engine/engine.h"

namespace headrace {

struct TestAnswers {
  std::vector<std::vector<TokenId>> tokens;  ///< of each prompt
  int32_t most_out = 0;                      ///< steps that were in flight at once
};

/// Greedy answers of `length` tokens to prompts of many lengths, which share their beginning, all at once.
inline TestAnswers greedy_answers(Engine& engine, uint64_t prompts, size_t length) {
  Scheduler& scheduler = engine.scheduler();
  Executor& executor = engine.executor();
  std::map<SequenceId, std::vector<TokenId>> running;
  for (uint64_t i = 0; i < prompts; ++i) {
    std::vector<TokenId> prompt;
    for (uint64_t t = 0; t < 20 + i * 6; ++t)
      prompt.push_back(static_cast<TokenId>((t * t * 5 + (t > 17 ? i : 0)) % 500));
    const auto max_len = static_cast<int32_t>(prompt.size() + length);
    EXPECT_EQ(scheduler.add(SequenceId{i + 1}, {.tokens = std::move(prompt), .max_len = max_len}), Admit::kYes);
    running[SequenceId{i + 1}] = {};
  }
  TestAnswers answers;
  int32_t out = 0;
  size_t finished = 0;
  StepResult result;
  while (finished < running.size()) {
    bool wants_room = false;
    while (out < scheduler.steps_in_flight_limit()) {
      wants_room = !executor.can_take();
      if (wants_room) break;
      std::optional<StepPlan> plan = scheduler.compose();
      if (!plan) break;
      executor.submit(std::move(*plan));
      answers.most_out = std::max(answers.most_out, ++out);
    }
    if (out > 0 && !executor.wait(wants_room)) continue;
    const auto received = out > 0 ? executor.receive(result) : Error(ErrorCode::kInternal, "nothing can be computed");
    if (!received) {
      ADD_FAILURE() << received.error().message();
      break;
    }
    --out;
    scheduler.complete(result);
    for (size_t row = 0; row < result.outputs.size(); ++row) {
      const SequenceId id = result.outputs[row].sequence;
      const auto width = static_cast<size_t>(result.width);
      const auto logits = std::span(result.data).subspan(row * width, width);
      const auto token = static_cast<TokenId>(std::ranges::max_element(logits) - logits.begin());
      running[id].push_back(token);
      if (running[id].size() < length) {
        scheduler.append(id, token);
      } else {
        scheduler.finish(id);
        ++finished;
      }
    }
  }
  for (auto& [id, tokens] : running) answers.tokens.push_back(std::move(tokens));
  return answers;
}

}  // namespace headrace
