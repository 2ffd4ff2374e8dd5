#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace headrace::client {

/// Calls `fn("<path>, line 3", line)` for each line that is not blank. Throws LoadError.
void for_each_json_line(const std::string& path,
                        const std::function<void(const std::string& where, std::string_view line)>& fn);

/// The JSON object that a line is. Throws LoadError naming `where`.
[[nodiscard]] nlohmann::json parse_json_line(const std::string& where, std::string_view line);

}  // namespace headrace::client
