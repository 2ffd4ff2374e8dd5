// Llama 3.1 and 3.2: the answer is {"name": "f", "parameters": {...}}, after <|python_tag|> perhaps; several calls are
// separated by semicolons.
#include "base/cat.h"
#include "openai/call_format.h"

namespace headrace::openai {
namespace {

constexpr const char* kTag = "<|python_tag|>";
constexpr const char* kKey = "parameters";

class Llama3Reader final : public CallReader {
 public:
  explicit Llama3Reader(ToolNames names) : CallReader(std::move(names), {kTag}) { leave_content(); }

 private:
  enum class State : uint8_t { kStart, kObject, kBehind };

  void begin(std::string_view) override {
    begin_object();
    state_ = State::kObject;
  }
  void read(char c) override {
    if (state_ == State::kObject) {
      if (read_object(c)) state_ = State::kBehind;
    } else if (is_json_space(c)) {
      hold(c);
    } else if (state_ == State::kStart && c == '{') {
      begin({});
      read(c);
    } else if (state_ == State::kBehind && c == ';') {
      hold(c);
      begin({});
    } else {
      give_up(c);
    }
  }

  State state_ = State::kStart;
};

class Llama3Calls final : public CallFormat {
 public:
  [[nodiscard]] std::string_view name() const noexcept override { return "llama3"; }
  [[nodiscard]] bool is_in(std::string_view chat_template) const override {
    return chat_template.find(kTag) != std::string_view::npos ||
           chat_template.find("\"parameters\": dictionary") != std::string_view::npos;
  }
  [[nodiscard]] std::vector<std::string> specials() const override { return {kTag}; }
  [[nodiscard]] Marks marks(std::span<const Tool> tools) const override {
    Marks marks{.anywhere = {kTag}};
    for (const Tool& tool : tools) marks.first.push_back(object_head(tool, kKey));
    return marks;
  }
  [[nodiscard]] std::string grammar(std::span<const Tool> tools, bool parallel, const MarkWriter& mark) const override {
    return cat("(", mark(kTag), ")? tool", parallel ? " (/; ?/ tool)*" : "", "\n", object_rules(tools, kKey));
  }
  [[nodiscard]] std::unique_ptr<CallReader> make_reader(ToolNames names) const override {
    return std::make_unique<Llama3Reader>(std::move(names));
  }
};

}  // namespace

const CallFormat& llama3_calls() {
  static const Llama3Calls calls;
  return calls;
}

}  // namespace headrace::openai
