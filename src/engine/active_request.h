#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "engine/continuation.h"
#include "headrace/generation.h"
#include "sched/sequence.h"

namespace headrace {

/// A request whose prompt is tokens and whose parameters were checked.
struct GenerationInput {
  std::vector<TokenId> prompt;
  SamplingParams sampling;
  std::optional<GrammarMatcher> grammar = {};  ///< compiled from sampling.structured_output
  std::optional<OutputGate> gate = {};         ///< the grammar binds from there on
  uint64_t seed = 0;                           ///< in place of sampling.seed, which may be absent
  bool continues_text = false;                 ///< the prompt is text that the answer goes on from
  bool score_only = false;                     ///< no answer is made: sampling.prompt_logprobs is what is wanted
  int32_t priority = 0;
  TenantId tenant{};
  uint64_t salt = 0;
  double queue_timeout_seconds = 0;  ///< 0: none
  double timeout_seconds = 0;        ///< 0: none
};

/// A request on its way: its choices, and what its sink is to hear. Threading: the engine's thread.
class ActiveRequest {
 public:
  using Time = std::chrono::steady_clock::time_point;

  ActiveRequest(RequestId id, GenerationInput input, EventSink sink);

  [[nodiscard]] RequestId id() const noexcept { return id_; }
  [[nodiscard]] const GenerationInput& input() const noexcept { return input_; }
  [[nodiscard]] int32_t prompt_tokens() const noexcept { return static_cast<int32_t>(input_.prompt.size()); }
  /// Answers to compute: best_of, or n.
  [[nodiscard]] int32_t num_choices() const noexcept;
  /// More answers are computed than told.
  [[nodiscard]] bool picks_best() const noexcept;
  [[nodiscard]] Time submitted() const noexcept { return submitted_; }
  [[nodiscard]] Usage& usage() noexcept { return usage_; }

  struct Part {
    SequenceId sequence{};
    std::unique_ptr<Continuation> continuation;
    bool finished = false;
  };
  [[nodiscard]] std::vector<Part>& parts() noexcept { return parts_; }
  [[nodiscard]] Part& part(int32_t choice) noexcept { return parts_[static_cast<size_t>(choice)]; }
  Continuation& add_part(SequenceId sequence, Continuation continuation);
  /// Whether all choices have ended.
  [[nodiscard]] bool finished() const noexcept;

  [[nodiscard]] bool begun() const noexcept { return begun_; }
  /// The first step with it was made.
  void begin(int32_t cached_tokens);
  /// True once: it waits no longer.
  [[nodiscard]] bool leave_queue() noexcept { return !std::exchange(left_queue_, true); }
  /// A token of one of the choices was sampled.
  void count_token();

  [[nodiscard]] bool wants_prompt_logprobs() const noexcept;
  /// Of the prompt's next token, the second one first; told with the first event.
  void add_prompt_logprobs(TokenLogprobs logprobs);
  [[nodiscard]] int32_t num_prompt_logprobs() const noexcept { return static_cast<int32_t>(prompt_logprobs_.size()); }

  /// Tells the sink, or keeps the event where only the best of the choices will be told. `last` is set where all
  /// choices have finished.
  void emit(GenerationEvent event);
  void fail(const Error& error);

 private:
  void emit_best();
  void send(GenerationEvent event);

  RequestId id_;
  GenerationInput input_;
  EventSink sink_;
  Time submitted_;
  Usage usage_;
  bool begun_ = false, left_queue_ = false;
  std::vector<Part> parts_;
  std::vector<TokenLogprobs> prompt_logprobs_;
  Answer kept_;  // of all choices, where the best are picked
};

}  // namespace headrace
