#include "client/json_lines.h"

#include <nlohmann/json.hpp>

#include "base/cat.h"
#include "base/error.h"
#include "files/json_file.h"

namespace headrace::client {

void for_each_json_line(const std::string& path,
                        const std::function<void(const std::string& where, std::string_view line)>& fn) {
  const std::string text = read_text_file(path, size_t{4} << 30);
  size_t number = 0;
  for (size_t from = 0; from < text.size();) {
    const size_t end = std::min(text.find('\n', from), text.size());
    const std::string_view line = std::string_view(text).substr(from, end - from);
    ++number;
    from = end + 1;
    if (line.find_first_not_of(" \t\r") != std::string_view::npos) fn(cat(path, ", line ", number), line);
  }
}

nlohmann::json parse_json_line(const std::string& where, std::string_view line) {
  nlohmann::json json = parse_json(where, line);
  if (!json.is_object()) throw LoadError(where, "expected a JSON object");
  return json;
}

}  // namespace headrace::client
