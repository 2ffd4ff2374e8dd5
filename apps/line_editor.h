#pragma once

#include <memory>
#include <optional>
#include <string>

namespace headrace {

/// Reads lines from a terminal with editing and a history (libedit), kept in a file over sessions.
class LineEditor {
 public:
  /// `history_path`: empty for none. A file that cannot be read or written is left alone.
  LineEditor(std::string prompt, std::string history_path);
  ~LineEditor();
  LineEditor(const LineEditor&) = delete;
  LineEditor& operator=(const LineEditor&) = delete;

  enum class Event { kLine, kInterrupt, kEnd };
  /// kLine: `line` without its end. kInterrupt: Ctrl-C; `line` is what had been typed. kEnd: Ctrl-D at an empty prompt.
  [[nodiscard]] Event read(std::string& line);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Where chats keep their history: "chat-history" in the cache folder ($HEADRACE_CACHE, else ~/.cache/headrace); empty
/// where there is no home.
[[nodiscard]] std::string chat_history_path();

}  // namespace headrace
