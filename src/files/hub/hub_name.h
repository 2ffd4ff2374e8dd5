#pragma once

#include <string>
#include <string_view>

namespace headrace {

inline constexpr std::string_view kHubPrefix = "hf:";

/// What "hf:ORG/NAME[@REVISION][:FILE]" names.
struct HubName {
  std::string repo;               ///< "ORG/NAME"
  std::string revision = "main";  ///< a branch, a tag, "refs/pr/1" or a commit
  std::string file;  ///< a path in the repository or the name of a quantization, such as Q4_K_M; empty: choose

  std::string argument;  ///< as it was written, for messages
};

/// Whether `text` is a whole commit hash, 40 hex digits in lower case: what it names never changes.
[[nodiscard]] bool is_commit(std::string_view text);

/// Throws LoadError(kInvalidArgument) where `argument` has not that form.
[[nodiscard]] HubName parse_hub_name(std::string_view argument);

/// Whether a path from a stranger's list stays inside the folder that it is put into: relative, without "..", ".",
/// empty parts, backslashes and control characters, and of usual length.
[[nodiscard]] bool is_inside_path(std::string_view path);

}  // namespace headrace
