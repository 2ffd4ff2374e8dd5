#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "openai/serve_request.h"

namespace headrace::openai {

/// Makes the text of a streamed answer, server-sent events, out of the events of one body's requests. Text is escaped
/// straight into the buffer; JSON values are built only where log-probabilities or token ids were asked for.
/// Threading: one thread at a time.
class StreamWriter {
 public:
  explicit StreamWriter(AnswerPlan plan);

  /// Appends the chunks that an event without error makes, perhaps none; after the last event of all requests also
  /// those that end the stream.
  void add(size_t request, GenerationEvent event, std::string& out);
  /// Whether the end has been written.
  [[nodiscard]] bool finished() const noexcept { return ended_ == prompts_.size(); }
  /// Whether a choice ended with calls of tools.
  [[nodiscard]] bool calls_tools() const noexcept { return calls_tools_; }

  /// An event that is no chunk: the body of an error, which ends a stream in place of "[DONE]".
  static void append_event(std::string_view json, std::string& out);

 private:
  struct Prompt {
    Usage usage;
    std::vector<TokenLogprobs> logprobs;
  };
  struct Choice {
    explicit Choice(const MessageParserFactory& parser) : message(parser) {}
    MessageStream message;
    bool begun = false;
    size_t text_offset = 0;  // in characters, of the next token
  };
  /// What a chunk says behind its text. Each text of fields begins with a comma.
  struct ChunkEnd {
    std::string_view logprobs = "null";
    std::string_view finish_reason = {};  // empty: the choice goes on
    std::string_view choice_fields = {};
    std::string_view chunk_fields = {};
  };

  void add_chat(size_t request, size_t index, GenerationEvent& event, std::string& out);
  /// A chunk for each part of the message that `delta` adds to; tokens stand with the first one.
  void write_delta(size_t index, const MessageDelta& delta, const GenerationEvent& event, std::string& out) const;
  void write_tool_call(const ToolCallDelta& call, std::string& out) const;
  /// {"name": (in the first part), "arguments": }
  static void write_function(const ToolCallDelta& call, std::string& out);
  void add_text(size_t request, size_t index, GenerationEvent& event, std::string& out);
  void begin_chunk(size_t index, std::string& out) const;
  void end_chunk(const ChunkEnd& end, const GenerationEvent& event, std::string& out) const;
  void end_stream(std::string& out) const;

  [[nodiscard]] bool shows_tokens(const GenerationEvent& event) const noexcept;
  [[nodiscard]] std::string token_fields(const GenerationEvent& event) const;
  [[nodiscard]] std::string prompt_fields(size_t request) const;
  [[nodiscard]] std::string text_logprobs(size_t request, bool is_first, Choice& choice,
                                          const GenerationEvent& event) const;
  void append_total_usage(std::string& out) const;

  AnswerPlan plan_;
  std::string head_;  // of every chunk, up to the list of choices
  std::vector<Prompt> prompts_;
  std::vector<Choice> choices_;  // of all requests
  size_t ended_ = 0;
  bool calls_tools_ = false;
};

}  // namespace headrace::openai
