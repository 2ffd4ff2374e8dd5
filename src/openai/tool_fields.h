#pragma once

#include <string>
#include <vector>

#include "openai/fields.h"

namespace headrace::openai {

/// A function that the model may call.
struct Tool {
  std::string name;
  std::string parameters;  ///< JSON schema of an object
};

/// What a chat body says about tools.
struct ToolFields {
  enum class Choice : uint8_t {
    kNone,      ///< the model does not see them
    kAuto,      ///< it calls them or not
    kRequired,  ///< it calls at least one
  };
  Choice choice = Choice::kNone;
  bool parallel = true;     ///< more than one call in an answer
  bool old_form = false;    ///< asked with `functions`: the answer has a `function_call`
  std::vector<Tool> tools;  ///< that may be called: of a named one, that one
  std::string text;         ///< JSON for the chat template; empty: the model sees none
};

/// Reads `tools`, `tool_choice` and `parallel_tool_calls`, or the older `functions` and `function_call`. Throws
/// RequestError.
[[nodiscard]] ToolFields read_tools(const Fields& body);

}  // namespace headrace::openai
