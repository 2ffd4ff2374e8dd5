#pragma once

#include <string>
#include <string_view>

namespace headrace::openai {

inline constexpr const char* kThinkBegin = "<think>";
inline constexpr const char* kThinkEnd = "</think>";

/// Splits a text that comes piece by piece into the reasoning before </think> and what follows. The marks are part of
/// neither, nor is white space beside them.
class ReasoningSplitter {
 public:
  /// `is_open`: the text begins within the reasoning; a mark that opens it may come all the same.
  explicit ReasoningSplitter(bool is_open) : is_open_(is_open) {}

  /// Adds to `reasoning`; returns what belongs to the answer proper.
  [[nodiscard]] std::string feed(std::string_view text, std::string& reasoning);
  /// What was held back.
  [[nodiscard]] std::string finish(std::string& reasoning);

 private:
  enum class State : uint8_t { kStart, kReasoning, kBehind, kAnswer };
  /// Goes one state on; false: more text is needed.
  [[nodiscard]] bool advance(std::string& reasoning);
  /// Gives out the reasoning that is held but for its last `keep` bytes and white space before them.
  void give_out(size_t keep, std::string& reasoning);

  State state_ = State::kStart;
  bool is_open_;
  bool has_begun_ = false;  // the reasoning, with more than white space
  std::string held_;
};

}  // namespace headrace::openai
