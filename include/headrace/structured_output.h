#pragma once

#include <string>
#include <variant>
#include <vector>

namespace headrace {

/// What an answer must be as a whole. The names are those of vLLM's `structured_outputs`.
struct JsonSchemaOutput {
  std::string schema;  ///< JSON that fits this schema (json-schema.org), white space at most 8 characters together
};
struct JsonObjectOutput {};  ///< any JSON object
struct RegexOutput {
  std::string pattern;  ///< a text that matches as a whole; syntax of Rust's regex, no look-around
};
struct ChoiceOutput {
  std::vector<std::string> choices;  ///< exactly one of these, none empty
};
struct GrammarOutput {
  std::string lark;  ///< a text of this grammar, in llguidance's variant of Lark
};
/// Free text in which certain parts fit schemas: wherever it comes to a trigger, it goes on as one of the structures
/// whose begin starts with that trigger.
struct StructuralTagOutput {
  /// JSON: {"structures": [{"begin": "<f=a>", "schema": {...}, "end": "</f>"}], "triggers": ["<f="]}
  std::string tag;
};
using StructuredOutput = std::variant<std::monostate, JsonSchemaOutput, JsonObjectOutput, RegexOutput, ChoiceOutput,
                                      GrammarOutput, StructuralTagOutput>;  ///< std::monostate: any text

}  // namespace headrace
