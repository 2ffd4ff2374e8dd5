#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace headrace::client {

/// What a load generator needs of one event of a streamed answer, or of a whole answer: text completion or chat.
struct AnswerChunk {
  bool valid = false;        ///< the data is a JSON object
  bool has_choices = false;  ///< `choices` is not empty
  bool has_role = false;     ///< a delta names the role, as the first one of a chat does
  std::string text;          ///< text, content, reasoning or arguments of a tool call; of all choices
  std::string finish_reason;
  std::string error;  ///< the message, where the event or body is an error
  std::optional<int64_t> prompt_tokens, completion_tokens, cached_tokens;  ///< from `usage`
};

/// Reads the JSON by events and builds no document: this runs once for each token.
[[nodiscard]] AnswerChunk read_answer_chunk(std::string_view json);

}  // namespace headrace::client
