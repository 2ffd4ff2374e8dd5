#pragma once

#include <string>

namespace headrace {

/// A conversation as clients of the OpenAI API send it, for a model's chat template. All texts but the last are JSON.
struct Conversation {
  std::string messages = "[]";          ///< array of messages, with role, content, tool_calls, ...
  std::string tools = {};               ///< array of tools; empty: none
  std::string variables = {};           ///< object of further names that the template sees; empty: none
  std::string chat_template = {};       ///< Jinja in place of the model's template, not JSON; empty: the model's
  bool add_generation_prompt = true;    ///< end with the beginning of the assistant's answer
  bool continue_final_message = false;  ///< leave the last message open, so that the answer goes on from it
};

}  // namespace headrace
