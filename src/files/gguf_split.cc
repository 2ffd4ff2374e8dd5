#include "files/gguf_split.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

namespace headrace {
namespace {

constexpr std::string_view kForm = "-00000-of-00000.gguf";

/// (1, 3) of a name that ends with "-00001-of-00003.gguf".
std::optional<std::pair<int64_t, int64_t>> split_numbers(std::string_view name) {
  if (name.size() < kForm.size()) return std::nullopt;
  const std::string_view tail = name.substr(name.size() - kForm.size());
  int64_t numbers[2] = {0, 0};
  for (size_t i = 0; i < kForm.size(); ++i) {
    if (kForm[i] != '0') {
      if (tail[i] != kForm[i]) return std::nullopt;
    } else {
      if (tail[i] < '0' || tail[i] > '9') return std::nullopt;
      int64_t& number = numbers[i > 6];
      number = number * 10 + (tail[i] - '0');
    }
  }
  return std::pair(numbers[0], numbers[1]);
}

}  // namespace

std::string split_suffix(int64_t index, int64_t count) { return fmt::format("-{:05}-of-{:05}.gguf", index + 1, count); }

bool is_later_split(std::string_view name) {
  const auto numbers = split_numbers(name);
  return numbers && numbers->first != 1;
}

std::vector<std::string> split_files(const std::string& first) {
  const auto numbers = split_numbers(first);
  if (!numbers || numbers->first != 1 || numbers->second < 1) return {first};
  std::vector<std::string> files;
  const std::string stem = first.substr(0, first.size() - kForm.size());
  for (int64_t i = 0; i < numbers->second; ++i) files.push_back(stem + split_suffix(i, numbers->second));
  return files;
}

}  // namespace headrace
