#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace headrace::client {

enum class RequestStatus {
  kCompleted,   ///< answered to the end
  kFailed,      ///< refused, or ended by an error, or lost before any token came
  kIncomplete,  ///< the stream broke off after some tokens
  kCancelled,   ///< given up by the client (Ctrl-C)
};
[[nodiscard]] std::string_view status_name(RequestStatus status) noexcept;

/// One request as the client saw it. Times are seconds since the run began, on a steady clock, taken when bytes
/// arrive; those before the first byte that matters are 0.
struct RequestRecord {
  int32_t index = 0;
  RequestStatus status = RequestStatus::kFailed;
  double arrival = 0;  ///< when the plan has it
  double due = 0;      ///< later than arrival where it had to wait for one of a limited number of clients
  double sent = 0;
  double first_chunk = 0;           ///< first event with a choice in it, which may be a mere role
  double first_text = 0;            ///< first event with text
  double last_chunk = 0;            ///< last event with a choice in it
  double end = 0;                   ///< the exchange is over
  std::vector<double> token_times;  ///< events that carry a token: text, or nothing at all (a token held back)
  int64_t prompt_tokens = 0;        ///< as the client made it
  std::optional<int64_t> usage_prompt_tokens, usage_completion_tokens, cached_tokens;  ///< as the server counts
  int64_t max_tokens = 0;
  int64_t http_status = 0;
  std::string finish_reason;
  std::string error;
  std::string text;
  bool done_marker = false;  ///< the stream ended in [DONE]

  bool operator==(const RequestRecord&) const = default;
};

/// The server's count where it gives one.
[[nodiscard]] int64_t input_tokens(const RequestRecord& record) noexcept;
[[nodiscard]] int64_t output_tokens(const RequestRecord& record) noexcept;

/// One line of the file of requests: all of the above, so that every figure can be computed again.
[[nodiscard]] nlohmann::ordered_json record_json(const RequestRecord& record);
/// Throws Error for a line that record_json does not write; `where` names it.
[[nodiscard]] RequestRecord read_record(const std::string& where, std::string_view line);
/// All lines of a file. Throws LoadError.
[[nodiscard]] std::vector<RequestRecord> read_records(const std::string& path);

}  // namespace headrace::client
