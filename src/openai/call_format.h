#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "openai/call_reader.h"
#include "openai/tool_fields.h"

namespace headrace::openai {

/// How a family of models writes calls of tools.
class CallFormat {
 public:
  CallFormat() = default;
  CallFormat(const CallFormat&) = delete;
  CallFormat& operator=(const CallFormat&) = delete;
  virtual ~CallFormat() = default;

  [[nodiscard]] virtual std::string_view name() const noexcept = 0;
  /// Whether a chat template has its marks.
  [[nodiscard]] virtual bool is_in(std::string_view chat_template) const = 0;
  /// Texts that may be special tokens.
  [[nodiscard]] virtual std::vector<std::string> specials() const = 0;

  /// Where calls begin; see StructuredOutputStart.
  struct Marks {
    std::vector<std::string> anywhere = {};
    std::vector<std::string> first = {};
  };
  [[nodiscard]] virtual Marks marks(std::span<const Tool> tools) const = 0;
  /// Writes a mark in a grammar.
  using MarkWriter = std::function<std::string(std::string_view mark)>;
  /// The text of one call, or of several, in llguidance's Lark: the right side of the rule `start`, and further rules.
  [[nodiscard]] virtual std::string grammar(std::span<const Tool> tools, bool parallel,
                                            const MarkWriter& mark) const = 0;
  [[nodiscard]] virtual std::unique_ptr<CallReader> make_reader(ToolNames names) const = 0;
};

/// All formats; of those with one name, the first one that is in a model's template is meant.
[[nodiscard]] std::span<const CallFormat* const> call_formats();

/// A text as Lark writes it.
[[nodiscard]] std::string lark_text(std::string_view text);
/// The rule `tool`: one of the tools' calls as an object, its arguments bound by the schema; `key`: "arguments" or
/// "parameters".
[[nodiscard]] std::string object_rules(std::span<const Tool> tools, std::string_view key);
/// What a call begins with in object_rules.
[[nodiscard]] std::string object_head(const Tool& tool, std::string_view key);

[[nodiscard]] const CallFormat& hermes_calls();
[[nodiscard]] const CallFormat& llama3_calls();
/// [TOOL_CALLS][{...}, {...}]
[[nodiscard]] const CallFormat& mistral_list_calls();
/// [TOOL_CALLS]name[ARGS]{...}
[[nodiscard]] const CallFormat& mistral_named_calls();

}  // namespace headrace::openai
