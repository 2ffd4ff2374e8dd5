#pragma once

#include <string>
#include <vector>

#include "apps/chat_session.h"
#include "headrace/headrace.h"

namespace headrace {

enum class ParallelOutcome : uint8_t {
  kAllAnswered,
  kSomeFailed,  ///< their lines say why
  kStopped,     ///< by Ctrl-C, or nobody reads the answers any more
};

/// Answers `prompts`, at most `at_once` at the same time, and prints each answer in the order of the prompts, as soon
/// as those before it are there.
[[nodiscard]] ParallelOutcome run_parallel(Model& model, const ChatSettings& settings,
                                           const std::vector<std::string>& prompts, int32_t at_once);

}  // namespace headrace
