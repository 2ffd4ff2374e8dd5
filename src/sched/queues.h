#pragma once

#include <cstdint>

#include "sched/cost_model.h"
#include "sched/decode_queue.h"
#include "sched/prompt_queue.h"

namespace headrace {

/// Which sequence waits for what. Membership follows from the sequences themselves: whoever changes one calls place().
class Queues {
 public:
  explicit Queues(const TenantAccounts& tenants) : waiting_(tenants), prompts_(tenants) {}

  /// Moves the sequence into the queue that its state and its remaining tokens ask for, or into none: it is finished,
  /// or waits for a token.
  void place(Sequence& sequence);
  /// Takes it out of its queue until it is placed again.
  void remove(Sequence& sequence);

  [[nodiscard]] PromptQueue& waiting() noexcept { return waiting_; }
  [[nodiscard]] PromptQueue& prompts() noexcept { return prompts_; }
  [[nodiscard]] DecodeQueue& decodes() noexcept { return decodes_; }
  [[nodiscard]] const PromptQueue& waiting() const noexcept { return waiting_; }
  [[nodiscard]] const PromptQueue& prompts() const noexcept { return prompts_; }

 private:
  PromptQueue waiting_;  ///< not running, something to compute
  PromptQueue prompts_;  ///< running, in the midst of a prompt
  DecodeQueue decodes_;  ///< running, with a new token
};

}  // namespace headrace
