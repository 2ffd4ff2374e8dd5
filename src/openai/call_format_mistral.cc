// Mistral: [TOOL_CALLS][{"name": "f", "arguments": {...}}, ...], and for newer models [TOOL_CALLS]f[ARGS]{...}, once
// for each call, where [CALL_ID] and an id may stand before [ARGS] or [ARGS] may be missing. Both are read of all.
#include <algorithm>

#include "base/cat.h"
#include "openai/call_format.h"
#include "openai/call_id.h"

namespace headrace::openai {
namespace {

constexpr const char* kCalls = "[TOOL_CALLS]";
constexpr const char* kArgs = "[ARGS]";
constexpr const char* kCallId = "[CALL_ID]";
constexpr size_t kMaxNameLength = 64;
constexpr size_t kMaxBetweenLength = 64;  // from a name to its arguments

class MistralReader final : public CallReader {
 public:
  explicit MistralReader(ToolNames names) : CallReader(std::move(names), {kCalls}) {}

 private:
  enum class State : uint8_t { kBegin, kListed, kBehindListed, kName, kBetween, kArguments };

  // The models' templates refuse ids of another form.
  [[nodiscard]] std::string new_id() const override { return random_name(9); }
  void begin(std::string_view) override { state_ = State::kBegin; }

  void read(char c) override {
    switch (state_) {
      case State::kBegin:
        if (is_json_space(c)) return hold(c);
        state_ = c == '[' ? State::kListed : State::kName;
        name_.clear();
        if (state_ == State::kName) return read(c);
        hold(c);
        return begin_object();
      case State::kListed:
        if (read_object(c)) state_ = State::kBehindListed;
        return;
      case State::kBehindListed:
        return read_behind_listed(c);
      case State::kName:
        return read_name(c);
      case State::kBetween:
        if (c == '{') return begin_arguments(c);
        if (++between_ > kMaxBetweenLength) return break_off(c);
        return;
      case State::kArguments:
        return read_arguments(c);
    }
  }

  void read_behind_listed(char c) {
    if (is_json_space(c)) return hold(c);
    if (c == ',') {
      hold(c);
      state_ = State::kListed;
      return begin_object();
    }
    if (c != ']') return give_up(c);
    drop_held();
    go_to_content();
  }

  void read_name(char c) {
    if (c != '{' && c != '[') {
      if (name_.size() == kMaxNameLength) return give_up(c);
      hold(c);
      name_ += c;
      return;
    }
    while (!name_.empty() && is_json_space(name_.back())) name_.pop_back();
    if (!is_tool(name_)) return give_up(c);
    begin_call(name_);
    between_ = 0;
    state_ = State::kBetween;
    if (c == '{') begin_arguments(c);
  }

  void begin_arguments(char c) {
    state_ = State::kArguments;
    span_ = {};
    read_arguments(c);
  }

  void read_arguments(char c) {
    const JsonSpan::Step step = span_.push(c);
    if (step == JsonSpan::Step::kWrong) return break_off(c);
    add_arguments({&c, 1});
    if (step != JsonSpan::Step::kEnds) return;
    end_call();
    go_to_content();
  }

  State state_ = State::kBegin;
  std::string name_;
  size_t between_ = 0;
  JsonSpan span_;
};

class MistralCalls : public CallFormat {
 public:
  [[nodiscard]] std::string_view name() const noexcept override { return "mistral"; }
  [[nodiscard]] std::vector<std::string> specials() const override { return {kCalls, kArgs, kCallId}; }
  [[nodiscard]] Marks marks(std::span<const Tool>) const override { return {.anywhere = {kCalls}}; }
  [[nodiscard]] std::unique_ptr<CallReader> make_reader(ToolNames names) const override {
    return std::make_unique<MistralReader>(std::move(names));
  }
};

bool has(std::string_view text, const char* mark) { return text.find(mark) != std::string_view::npos; }

class MistralListCalls final : public MistralCalls {
 public:
  [[nodiscard]] bool is_in(std::string_view chat_template) const override {
    return has(chat_template, kCalls) && !has(chat_template, kArgs);
  }
  [[nodiscard]] std::string grammar(std::span<const Tool> tools, bool parallel, const MarkWriter& mark) const override {
    return cat(mark(kCalls), " / ?\\[/ tool", parallel ? " (\", \" tool)*" : "", " \"]\"\n",
               object_rules(tools, "arguments"));
  }
};

class MistralNamedCalls final : public MistralCalls {
 public:
  [[nodiscard]] bool is_in(std::string_view chat_template) const override {
    return has(chat_template, kCalls) && has(chat_template, kArgs);
  }
  [[nodiscard]] std::string grammar(std::span<const Tool> tools, bool parallel, const MarkWriter& mark) const override {
    std::string rules = cat(parallel ? "call+" : "call", "\ncall: ", mark(kCalls), " ( ");
    for (size_t i = 0; i < tools.size(); ++i) {
      rules += cat(i == 0 ? "" : " | ", lark_text(tools[i].name), " ", mark(kArgs), " %json ", tools[i].parameters);
    }
    return rules + " )\n";
  }
};

}  // namespace

const CallFormat& mistral_list_calls() {
  static const MistralListCalls calls;
  return calls;
}

const CallFormat& mistral_named_calls() {
  static const MistralNamedCalls calls;
  return calls;
}

}  // namespace headrace::openai
