#pragma once

#include <string>
#include <vector>

#include "base/options.h"
#include "headrace/structured_output.h"

namespace headrace {

/// What binds an answer, as flags say it.
struct StructuredFlags {
  std::string json_schema, regex, grammar, structural_tag;
  std::vector<std::string> choices;
  bool json_object = false;
};

/// Rows that write into `flags`, which must outlive them.
[[nodiscard]] std::vector<Option> structured_flags(StructuredFlags& flags);

/// The one that was given, its file read; std::monostate: none was. Throws Error for two of them.
[[nodiscard]] StructuredOutput read_structured_flags(const StructuredFlags& flags);

}  // namespace headrace
