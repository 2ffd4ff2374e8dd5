#include "client/words.h"

#include <algorithm>

namespace headrace::client {

std::vector<std::string_view> split_words(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  std::vector<std::string_view> words;
  for (size_t from = text.find_first_not_of(kSpace); from != std::string_view::npos;) {
    const size_t end = std::min(text.find_first_of(kSpace, from), text.size());
    words.push_back(text.substr(from, end - from));
    from = text.find_first_not_of(kSpace, end);
  }
  return words;
}

}  // namespace headrace::client
