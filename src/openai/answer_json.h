#pragma once

#include <functional>
#include <span>
#include <string>

#include "headrace/generation.h"
#include "openai/assistant_message.h"
#include "openai/fields.h"

namespace headrace::openai {

/// The bytes of text that a token adds, a part of a character perhaps.
using TokenBytes = std::function<std::string(int32_t token)>;

/// How tokens are shown in log-probabilities.
struct TokenNames {
  TokenBytes bytes;
  bool as_ids = false;  ///< "token_id:42" in place of the text (return_tokens_as_token_ids)
};

/// What all answers to one request share.
struct AnswerHead {
  std::string id;       ///< "chatcmpl-..." or "cmpl-..."
  std::string model;    ///< as it is served
  int64_t created = 0;  ///< Unix time in seconds
  std::string fingerprint;
};

/// "stop", "length"; cancelled answers count as "stop" there.
[[nodiscard]] std::string_view finish_reason_text(FinishReason reason) noexcept;
/// The text or the token that ended a choice; null where neither did.
[[nodiscard]] Json stop_reason_json(const StopCause& cause);
/// {"id", "object", "created", "model", "system_fingerprint"}
[[nodiscard]] Json head_json(const AnswerHead& head, std::string_view object);
/// Appends {"prompt_tokens", "completion_tokens", "total_tokens", ...}.
void append_usage(std::string& out, const Usage& usage, int32_t reasoning_tokens);
/// Appends llama.cpp's `timings`, in milliseconds and tokens a second; what was found in the cache counts apart.
void append_timings(std::string& out, const Usage& usage);
/// What all requests of one body have cost together; the times are those of the last one.
[[nodiscard]] Usage sum_of(std::span<const Usage> usages);

/// {"content": [{"token", "logprob", "bytes", "top_logprobs"}], "refusal": null}
[[nodiscard]] Json chat_logprobs_json(std::span<const TokenLogprobs> tokens, const TokenNames& names);
/// {"tokens", "token_logprobs", "top_logprobs", "text_offset"}; the first of `tokens` stands `offset` characters into
/// the text, which is moved on to behind the last one. `first_unknown`: a token whose probability is not known, the
/// first one of an echoed prompt.
[[nodiscard]] Json completion_logprobs_json(std::span<const TokenLogprobs> tokens, const TokenNames& names,
                                            size_t& offset, std::optional<int32_t> first_unknown = {});
/// Characters of a text; a token may hold a part of one, which counts where it begins.
[[nodiscard]] size_t count_characters(std::string_view text) noexcept;

/// vLLM's `prompt_logprobs`: null for the first token, then for each one {id: {"logprob", "rank", "decoded_token"}} of
/// itself and the best.
[[nodiscard]] Json prompt_logprobs_json(std::span<const TokenLogprobs> tokens, const TokenNames& names);

/// One choice of a chat completion that is not streamed.
[[nodiscard]] Json chat_choice_json(size_t index, const Choice& choice, const AssistantMessage& message, bool logprobs,
                                    const TokenNames& names);

/// What a text completion was asked with, as far as its answer shows it.
struct EchoedPrompt {
  std::string text;             ///< put before each answer; empty unless echo was asked for
  std::vector<int32_t> tokens;  ///< of the prompt, where their log-probabilities are shown
};
/// The log-probabilities that a choice begins with: those of the echoed prompt, where they are shown, then those of the
/// answer. `offset` is set to where the text goes on. For the rest of a streamed one: completion_logprobs_json.
[[nodiscard]] Json first_logprobs_json(const EchoedPrompt& echoed, std::span<const TokenLogprobs> prompt,
                                       std::span<const TokenLogprobs> answer, const TokenNames& names, size_t& offset);
/// The `choices` of one prompt, numbered from `first_index` on.
[[nodiscard]] Json completion_choices_json(const Answer& answer, int32_t first_index, const EchoedPrompt& echoed,
                                           bool logprobs, const TokenNames& names);
/// {"error": {"message", "type", "param", "code"}} and the HTTP status that goes with it.
struct ErrorAnswer {
  int status = 500;
  Json body;
};
[[nodiscard]] ErrorAnswer error_answer(const Error& error);

}  // namespace headrace::openai
