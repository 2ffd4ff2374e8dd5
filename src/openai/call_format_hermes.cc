// Hermes, Qwen 2.5, Qwen 3, QwQ: <tool_call>\n{"name": "f", "arguments": {...}}\n</tool_call>, one after the other.
#include "base/cat.h"
#include "openai/call_format.h"

namespace headrace::openai {
namespace {

constexpr const char* kBegin = "<tool_call>";
constexpr const char* kEnd = "</tool_call>";

class HermesReader final : public CallReader {
 public:
  explicit HermesReader(ToolNames names) : CallReader(std::move(names), {kBegin}) {}

 private:
  void begin(std::string_view) override {
    begin_object();
    is_behind_ = false;
  }
  void read(char c) override {
    if (!is_behind_) {
      is_behind_ = read_object(c);
      end_.clear();
      return;
    }
    if (end_.empty() && is_json_space(c)) return hold(c);
    if (!std::string_view(kEnd).starts_with(end_ + c)) return give_up(c);
    end_ += c;
    hold(c);
    if (end_ != kEnd) return;
    drop_held();
    go_to_content();
  }

  bool is_behind_ = false;  // the object, before the mark at the end
  std::string end_;         // what has come of that mark
};

class HermesCalls final : public CallFormat {
 public:
  [[nodiscard]] std::string_view name() const noexcept override { return "hermes"; }
  [[nodiscard]] bool is_in(std::string_view chat_template) const override {
    return chat_template.find(kBegin) != std::string_view::npos;
  }
  [[nodiscard]] std::vector<std::string> specials() const override { return {kBegin, kEnd}; }
  [[nodiscard]] Marks marks(std::span<const Tool>) const override { return {.anywhere = {kBegin}}; }
  [[nodiscard]] std::string grammar(std::span<const Tool> tools, bool parallel, const MarkWriter& mark) const override {
    return cat(parallel ? "call (/\\n?/ call)*" : "call", "\ncall: ", mark(kBegin), " /\\n?/ tool /\\n?/ ", mark(kEnd),
               "\n", object_rules(tools, "arguments"));
  }
  [[nodiscard]] std::unique_ptr<CallReader> make_reader(ToolNames names) const override {
    return std::make_unique<HermesReader>(std::move(names));
  }
};

}  // namespace

const CallFormat& hermes_calls() {
  static const HermesCalls calls;
  return calls;
}

}  // namespace headrace::openai
