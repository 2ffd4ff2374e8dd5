#pragma once

#include <string>
#include <vector>

#include "apps/chat_session.h"
#include "headrace/headrace.h"

namespace headrace {

/// Answers `prompts`, at most `at_once` at the same time, and prints each answer in the order of the prompts, as soon
/// as those before it are there. False: stopped by Ctrl-C.
[[nodiscard]] bool run_parallel(Model& model, const ChatSettings& settings, const std::vector<std::string>& prompts,
                                int32_t at_once);

}  // namespace headrace
