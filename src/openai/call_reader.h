#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "openai/call_object.h"
#include "openai/message_parser.h"

namespace headrace::openai {

/// Tools by name.
using ToolNames = std::set<std::string, std::less<>>;

/// Takes the calls of tools out of a text that comes byte by byte; what is no call, and white space before one apart,
/// is content. Formats derive from it. What text turns into does not depend on how it is cut.
class CallReader {
 public:
  CallReader(ToolNames names, std::vector<std::string> marks) : names_(std::move(names)), marks_(std::move(marks)) {}
  CallReader(const CallReader&) = delete;
  CallReader& operator=(const CallReader&) = delete;
  virtual ~CallReader() = default;

  void feed(std::string_view text, MessageDelta& delta);
  /// `keep_half`: the beginning of the first call, whose name has not come, is content; else it is dropped.
  void finish(MessageDelta& delta, bool keep_half);
  /// Whether there are calls, and all of them are whole.
  [[nodiscard]] bool has_whole_calls() const noexcept { return num_calls_ > 0 && !in_call_ && !broken_; }

 protected:
  /// A byte outside of plain content.
  virtual void read(char c) = 0;
  /// One of the marks has come: read() gets what follows.
  virtual void begin(std::string_view mark) = 0;
  [[nodiscard]] virtual std::string new_id() const;

  /// From the next byte on there is plain content, in which the marks are looked for.
  void go_to_content() noexcept { in_content_ = true; }
  void leave_content() noexcept { in_content_ = false; }
  /// A byte that belongs to a call only if more follows that does: it becomes content otherwise.
  void hold(char c) { held_ += c; }
  /// What is held belongs to a call.
  void drop_held() noexcept { held_.clear(); }
  /// What is held, and `c`, is content.
  void give_up(char c);

  /// Reads a byte of a call that is an object; true: it has ended. What is no such call becomes content.
  [[nodiscard]] bool read_object(char c);
  void begin_object() { object_ = {}; }

  [[nodiscard]] bool is_tool(std::string_view name) const { return names_.contains(name); }
  void begin_call(const std::string& name);
  void add_arguments(std::string_view json);
  void end_call();
  /// The call does not go on as JSON: `c` and what follows is content.
  void break_off(char c);

 private:
  void read_content(char c);
  [[nodiscard]] ToolCallDelta& call_delta();

  ToolNames names_;
  std::vector<std::string> marks_;
  MessageDelta* delta_ = nullptr;  // while text is fed
  std::string held_;
  CallObject object_;
  std::string arguments_;  // of the present call, to be checked
  int32_t num_calls_ = 0;
  bool in_content_ = true;
  bool in_call_ = false;
  bool broken_ = false;
};

}  // namespace headrace::openai
