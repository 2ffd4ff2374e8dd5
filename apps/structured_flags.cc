#include "apps/structured_flags.h"

#include "base/cat.h"
#include "base/error.h"
#include "files/json_file.h"

namespace headrace {
namespace {

/// A file's text, or the text itself where it cannot be a path: a schema begins with a brace, a grammar has a colon
/// after the name of its first rule.
std::string text_or_file(const std::string& value, std::string_view text_marks) {
  return value.find_first_of(text_marks) != std::string::npos ? value : read_text_file(value);
}

}  // namespace

std::vector<Option> structured_flags(StructuredFlags& flags) {
  return {
      {.name = "json-schema",
       .target = &flags.json_schema,
       .value_name = "FILE|TEXT",
       .help = "the answer is JSON that fits this schema"},
      {.name = "json-object", .target = &flags.json_object, .help = "the answer is a JSON object"},
      {.name = "regex", .target = &flags.regex, .value_name = "PATTERN", .help = "the answer matches it as a whole"},
      {.name = "choice",
       .target = &flags.choices,
       .value_name = "TEXT",
       .help = "the answer is one of these; give the flag once for each"},
      {.name = "grammar",
       .target = &flags.grammar,
       .value_name = "FILE|TEXT",
       .help = "the answer is a text of this Lark grammar (llguidance's variant)"},
      {.name = "structural-tag",
       .target = &flags.structural_tag,
       .value_name = "FILE|TEXT",
       .help = "parts of the answer fit schemas: JSON with structures and triggers"},
  };
}

StructuredOutput read_structured_flags(const StructuredFlags& flags) {
  StructuredOutput output;
  std::string first;
  const auto set = [&](bool given, const char* flag, auto make) {
    if (!given) return;
    if (!first.empty()) {
      throw Error(ErrorCode::kInvalidArgument, cat(flag, " and ", first, ": only one of them can bind the answer"));
    }
    first = flag;
    output = make();
  };
  set(!flags.json_schema.empty(), "--json-schema",
      [&] { return JsonSchemaOutput{text_or_file(flags.json_schema, "{")}; });
  set(flags.json_object, "--json-object", [] { return JsonObjectOutput{}; });
  set(!flags.regex.empty(), "--regex", [&] { return RegexOutput{flags.regex}; });
  set(!flags.choices.empty(), "--choice", [&] { return ChoiceOutput{flags.choices}; });
  set(!flags.grammar.empty(), "--grammar", [&] { return GrammarOutput{text_or_file(flags.grammar, ":")}; });
  set(!flags.structural_tag.empty(), "--structural-tag",
      [&] { return StructuralTagOutput{text_or_file(flags.structural_tag, "{")}; });
  return output;
}

}  // namespace headrace
