#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "engine/request_load.h"
#include "files/json_file.h"

namespace headrace {
namespace {

constexpr std::string_view kColumns[] = {"arrival", "prompt", "output"};
constexpr double kMostTokens = 1 << 24;

/// Numbers in the order of kColumns. `where`: "line 3".
LoadRequest request_of(const std::string& path, const std::string& where, const double (&numbers)[3]) {
  const auto is_length = [](double x) { return x >= 1 && x <= kMostTokens && x == std::floor(x); };
  if (!(numbers[0] >= 0 && std::isfinite(numbers[0])) || !is_length(numbers[1]) || !is_length(numbers[2])) {
    throw LoadError(path, cat(where, ": arrival ", numbers[0], ", prompt ", numbers[1], ", output ", numbers[2],
                              "; expected seconds from 0 and whole tokens from 1"));
  }
  return {.arrival = numbers[0],
          .prompt_tokens = static_cast<int32_t>(numbers[1]),
          .output_tokens = static_cast<int32_t>(numbers[2])};
}

std::vector<LoadRequest> from_json(const std::string& path, std::string_view text) {
  const nlohmann::json root = parse_json(path, text);
  if (!root.is_array()) throw LoadError(path, "expected an array of requests");
  std::vector<LoadRequest> load;
  for (const nlohmann::json& entry : root) {
    const std::string where = cat("request ", load.size());
    double numbers[3];
    for (size_t i = 0; i < 3; ++i) {
      const std::string key(kColumns[i]);
      if (!entry.is_object() || !entry.contains(key) || !entry[key].is_number()) {
        throw LoadError(path, cat(where, ": expected an object with the number '", key, "'"));
      }
      numbers[i] = entry[key].get<double>();
    }
    load.push_back(request_of(path, where, numbers));
  }
  return load;
}

std::vector<std::string_view> cells_of(std::string_view line) {
  std::vector<std::string_view> cells;
  while (true) {
    const size_t comma = std::min(line.find(','), line.size());
    std::string_view cell = line.substr(0, comma);
    while (!cell.empty() && (cell.front() == ' ' || cell.front() == '\t')) cell.remove_prefix(1);
    while (!cell.empty() && (cell.back() == ' ' || cell.back() == '\t' || cell.back() == '\r')) cell.remove_suffix(1);
    cells.push_back(cell);
    if (comma == line.size()) return cells;
    line.remove_prefix(comma + 1);
  }
}

/// Where each column of kColumns is.
std::vector<size_t> columns_of(const std::string& path, std::string_view head) {
  const std::vector<std::string_view> cells = cells_of(head);
  std::vector<size_t> columns;
  for (const std::string_view name : kColumns) {
    const auto found = std::ranges::find(cells, name);
    if (found == cells.end()) throw LoadError(path, cat("line 1: no column '", name, "' (arrival, prompt, output)"));
    columns.push_back(static_cast<size_t>(found - cells.begin()));
  }
  return columns;
}

std::vector<LoadRequest> from_csv(const std::string& path, std::string_view text) {
  std::vector<LoadRequest> load;
  std::vector<size_t> columns;
  for (size_t line_number = 1; !text.empty(); ++line_number) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line_number == 1) {
      columns = columns_of(path, line);
      continue;
    }
    const std::vector<std::string_view> cells = cells_of(line);
    if (cells.size() == 1 && cells[0].empty()) continue;
    const std::string where = cat("line ", line_number);
    double numbers[3];
    for (size_t i = 0; i < 3; ++i) {
      const std::string_view cell = columns[i] < cells.size() ? cells[columns[i]] : std::string_view{};
      const auto [rest, code] = std::from_chars(cell.data(), cell.data() + cell.size(), numbers[i]);
      if (code != std::errc{} || rest != cell.data() + cell.size()) {
        throw LoadError(path, cat(where, ": ", kColumns[i], ": '", printable(cell), "' is not a number"));
      }
    }
    load.push_back(request_of(path, where, numbers));
  }
  return load;
}

}  // namespace

std::vector<LoadRequest> read_load(const std::string& path) {
  const std::string text = read_text_file(path);
  const size_t first = text.find_first_not_of(" \t\r\n");
  const bool is_json = first != std::string::npos && (text[first] == '[' || text[first] == '{');
  std::vector<LoadRequest> load = is_json ? from_json(path, text) : from_csv(path, text);
  if (load.empty()) throw LoadError(path, "no requests");
  std::ranges::stable_sort(load, {}, &LoadRequest::arrival);
  return load;
}

}  // namespace headrace
