#include "client/answer_chunk.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

namespace headrace::client {
namespace {

enum class Key : uint8_t {
  kOther,
  kElement,  ///< of an array
  kChoices,
  kDelta,  ///< or `message`, in an answer that is not streamed
  kText,
  kContent,
  kReasoning,
  kToolCalls,
  kFunction,
  kArguments,
  kRole,
  kFinishReason,
  kUsage,
  kPromptTokens,
  kCompletionTokens,
  kPromptDetails,
  kCachedTokens,
  kError,
  kObject,
};

Key key_of(std::string_view name) noexcept {
  struct Row {
    std::string_view name;
    Key key;
  };
  static constexpr Row kRows[] = {{"choices", Key::kChoices},
                                  {"delta", Key::kDelta},
                                  {"message", Key::kDelta},
                                  {"text", Key::kText},
                                  {"content", Key::kContent},
                                  {"reasoning_content", Key::kReasoning},
                                  {"reasoning", Key::kReasoning},
                                  {"tool_calls", Key::kToolCalls},
                                  {"function", Key::kFunction},
                                  {"arguments", Key::kArguments},
                                  {"role", Key::kRole},
                                  {"finish_reason", Key::kFinishReason},
                                  {"usage", Key::kUsage},
                                  {"prompt_tokens", Key::kPromptTokens},
                                  {"completion_tokens", Key::kCompletionTokens},
                                  {"prompt_tokens_details", Key::kPromptDetails},
                                  {"cached_tokens", Key::kCachedTokens},
                                  {"error", Key::kError},
                                  {"object", Key::kObject}};
  const auto* row = std::ranges::find(kRows, name, &Row::name);
  return row == std::end(kRows) ? Key::kOther : row->key;
}

/// Follows the path to each value, and keeps those of a few paths.
class ChunkReader : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit ChunkReader(AnswerChunk& chunk) : chunk_(chunk) {}

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t value) override { return number(value); }
  bool number_unsigned(number_unsigned_t value) override { return number(static_cast<int64_t>(value)); }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool start_object(size_t) override { return open(Key::kOther); }
  bool start_array(size_t) override { return open(Key::kElement); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(string_t& name) override {
    if (depth_ <= path_.size()) path_[depth_ - 1] = key_of(name);
    return true;
  }
  bool parse_error(size_t, const std::string&, const nlohmann::detail::exception&) override { return false; }

  bool string(string_t& value) override {
    if (at({Key::kChoices, Key::kElement, Key::kText}) ||
        at({Key::kChoices, Key::kElement, Key::kDelta, Key::kContent}) ||
        at({Key::kChoices, Key::kElement, Key::kDelta, Key::kReasoning}) ||
        at({Key::kChoices, Key::kElement, Key::kDelta, Key::kToolCalls, Key::kElement, Key::kFunction,
            Key::kArguments})) {
      chunk_.text += value;
    } else if (at({Key::kChoices, Key::kElement, Key::kDelta, Key::kRole})) {
      chunk_.has_role = true;
    } else if (at({Key::kChoices, Key::kElement, Key::kFinishReason})) {
      chunk_.finish_reason = value;
    } else if (at({Key::kError}) || at({Key::kError, Key::kDelta})) {
      chunk_.error = value;
    } else if (at({Key::kDelta})) {
      message_ = value;
    } else if (at({Key::kObject})) {
      is_error_ = value == "error";
    }
    return true;
  }

  /// An error in the older form of vLLM: {"object":"error","message":"..."}.
  void finish() {
    if (is_error_ && chunk_.error.empty()) chunk_.error = message_;
  }

 private:
  bool number(int64_t value) {
    if (at({Key::kUsage, Key::kPromptTokens})) chunk_.prompt_tokens = value;
    if (at({Key::kUsage, Key::kCompletionTokens})) chunk_.completion_tokens = value;
    if (at({Key::kUsage, Key::kPromptDetails, Key::kCachedTokens})) chunk_.cached_tokens = value;
    return true;
  }
  bool open(Key first) {
    if (at({Key::kChoices, Key::kElement})) chunk_.has_choices = true;
    if (depth_ == 0) chunk_.valid = first == Key::kOther;
    if (at({Key::kError}) && chunk_.error.empty()) chunk_.error = "(no message)";
    if (depth_ < path_.size()) path_[depth_] = first;
    ++depth_;
    return true;
  }
  bool close() {
    --depth_;
    return true;
  }
  [[nodiscard]] bool at(std::initializer_list<Key> path) const {
    return depth_ == path.size() && std::equal(path.begin(), path.end(), path_.begin());
  }

  AnswerChunk& chunk_;
  std::array<Key, 8> path_{};  ///< deeper values are of no interest
  size_t depth_ = 0;
  bool is_error_ = false;
  std::string message_;
};

}  // namespace

AnswerChunk read_answer_chunk(std::string_view json) {
  AnswerChunk chunk;
  ChunkReader reader(chunk);
  if (!nlohmann::json::sax_parse(json, &reader)) return {};
  reader.finish();
  return chunk;
}

}  // namespace headrace::client
