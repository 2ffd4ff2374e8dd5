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
  std::string lark;         ///< a text of this grammar, in llguidance's variant of Lark
  std::string origin = {};  ///< the parameter that the grammar was made from, for messages; empty: it was given
};
/// Free text in which certain parts fit schemas: wherever it comes to a trigger, it goes on as one of the structures
/// whose begin starts with that trigger.
struct StructuralTagOutput {
  /// JSON: {"structures": [{"begin": "<f=a>", "schema": {...}, "end": "</f>"}], "triggers": ["<f="]}
  std::string tag;
};
using StructuredOutput = std::variant<std::monostate, JsonSchemaOutput, JsonObjectOutput, RegexOutput, ChoiceOutput,
                                      GrammarOutput, StructuralTagOutput>;  ///< std::monostate: any text

/// Where in an answer its structured output begins; by default at once. A mark is a text, the name of a special token
/// perhaps.
struct StructuredOutputStart {
  /// Reasoning comes first, which nothing binds: up to `reasoning_end`, if the answer begins with `reasoning_begin` or
  /// the prompt has (`in_reasoning`). Empty: there is none.
  std::string reasoning_begin = {};
  std::string reasoning_end = {};
  bool in_reasoning = false;
  /// Then comes free text, perhaps no other, up to one of the marks, with which the structured output begins.
  /// `first_marks` count only where nothing but white space is before them. None of both: there is no free text, and
  /// the answer does not end before the structured output.
  std::vector<std::string> marks = {};
  std::vector<std::string> first_marks = {};
};

}  // namespace headrace
