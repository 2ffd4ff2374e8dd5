#pragma once

#include <string>
#include <string_view>

#include "openai/answer_json.h"

namespace headrace::openai {

/// One line of a batch in OpenAI's format: {"custom_id", "method": "POST", "url", "body"}.
struct BatchLine {
  std::string custom_id;
  std::string url;  ///< "/v1/chat/completions" or "/v1/completions"
  Json body;
};

/// Throws RequestError for a line that is no such object, or asks for another endpoint.
[[nodiscard]] BatchLine read_batch_line(std::string_view line);

/// The line of the results: {"id", "custom_id", "response": {"status_code", "request_id", "body"}, "error": null},
/// without a line break.
[[nodiscard]] std::string batch_result_line(const std::string& custom_id, const std::string& request_id,
                                            const ErrorAnswer& answer);

/// What is to be known of a line of results.
struct BatchResult {
  std::string custom_id;  ///< empty where the line is none
  bool is_final = true;   ///< else (429, or the server's fault) another try may end otherwise
};
[[nodiscard]] BatchResult read_batch_result(std::string_view line);

}  // namespace headrace::openai
