#pragma once

#include <string>
#include <vector>

#include "headrace/headrace.h"

namespace headrace {

struct ChatSettings {
  SamplingParams params;
  std::string system;  ///< first message of every conversation; empty: none
  bool raw = false;    ///< each line is a prompt of its own, continued as it is
  bool quiet = false;
};

/// Talks with the user on the terminal until Ctrl-D or /exit. A line that ends in a backslash goes on in the next one.
void run_chat_session(Model& model, const ChatSettings& settings);

}  // namespace headrace
