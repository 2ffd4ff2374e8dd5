#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "headrace/error.h"
#include "headrace/sampling_params.h"
#include "headrace/token_logprobs.h"

namespace headrace {

struct Message {
  std::string role;  ///< "system", "user", "assistant"
  std::string content;
};

enum class FinishReason {
  kStop,       ///< an end-of-text token, a stop token or a stop text
  kLength,     ///< max_tokens, or the longest sequence that the model takes
  kCancelled,  ///< by the caller
};
[[nodiscard]] std::string_view finish_reason_name(FinishReason reason) noexcept;  ///< "stop", "length", "cancelled"

/// What is asked of a model.
struct Request {
  /// A text (continued as it is; names of special tokens in it become those tokens), a conversation (answered by the
  /// model's chat template), or the tokens of a prompt.
  std::variant<std::string, std::vector<Message>, std::vector<int32_t>> input;
  bool continues_text = true;  ///< of tokens: the answer goes on from their text (else it is a turn of its own)
  SamplingParams sampling = {};
  bool score_only = false;           ///< no answer is made: the prompt's log-probabilities are what is wanted
  int32_t priority = 0;              ///< lower ones are served first
  std::string tenant = {};           ///< tenants of one priority get equal shares
  std::string cache_salt = {};       ///< cached prefixes are shared only by requests of the same salt
  double queue_timeout_seconds = 0;  ///< fails with kTimeout if it has not begun by then; 0: waits for ever
  double timeout_seconds = 0;        ///< fails with kTimeout if it is not finished by then; 0: no limit
};

/// What a request has cost so far.
struct Usage {
  int32_t prompt_tokens = 0;
  int32_t cached_tokens = 0;       ///< of the prompt, found in the prefix cache
  int32_t completion_tokens = 0;   ///< of all choices, the tokens that ended them included
  double queued_seconds = 0;       ///< from the submission to the first step with it
  double first_token_seconds = 0;  ///< from the submission to the first token; 0: there is none yet
  double total_seconds = 0;        ///< from the submission until now
};

/// What ended a choice with kStop.
struct StopCause {
  std::optional<int32_t> token = {};  ///< an end-of-text token, or one of stop_token_ids
  std::string text = {};              ///< or one of the stop texts
};

/// Something that happened to a request. The texts of a choice's events, joined, are its answer.
struct GenerationEvent {
  int32_t choice = 0;
  std::string text = {};                     ///< whole characters; may be empty (while a long prompt is read, say)
  std::vector<int32_t> tokens = {};          ///< whose text is complete with this event
  std::vector<TokenLogprobs> logprobs = {};  ///< of these tokens, where they were asked for
  std::vector<TokenLogprobs> prompt_logprobs = {};  ///< with the first event, where they were asked for
  std::optional<FinishReason> finish_reason = {};   ///< the choice's last event
  StopCause stop_cause = {};
  std::optional<Error> error = {};  ///< the request failed; no event follows
  bool last = false;                ///< no event follows
  Usage usage = {};
};

/// Receives a request's events in their order, from the engine's thread: it must return at once and not throw.
using EventSink = std::function<void(GenerationEvent&&)>;

/// A prompt that leaves no room for an answer in the longest sequence that the model takes.
class ContextLengthError : public Error {
 public:
  ContextLengthError(int64_t prompt_tokens, int64_t max_model_len);
  [[nodiscard]] int64_t prompt_tokens() const noexcept { return prompt_tokens_; }
  [[nodiscard]] int64_t max_model_len() const noexcept { return max_model_len_; }

 private:
  int64_t prompt_tokens_;
  int64_t max_model_len_;
};

enum class RequestId : uint64_t {};

/// One of the answers to a request.
struct Choice {
  std::string text;
  std::vector<int32_t> tokens;
  std::vector<TokenLogprobs> logprobs;
  FinishReason reason = FinishReason::kStop;
  StopCause stop_cause = {};
};

/// All answers to a request.
struct Answer {
  std::vector<Choice> choices;
  std::vector<TokenLogprobs> prompt_logprobs;
  Usage usage;
};

/// Adds an event without error to the answer so far.
void add_event(GenerationEvent event, Answer& answer);

}  // namespace headrace
