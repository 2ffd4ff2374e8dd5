#include "sample/stop_matcher.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace headrace {

void StopMatcher::Pattern::advance(char c) noexcept {
  while (matched > 0 && text[matched] != c) matched = fallback[matched];
  if (text[matched] == c) ++matched;
}

StopMatcher::StopMatcher(std::span<const std::string> stops, bool include_stop) : include_stop_(include_stop) {
  for (const std::string& stop : stops) {
    HR_CHECK(!stop.empty(), "an empty stop text");
    Pattern pattern{.text = stop, .fallback = std::vector<size_t>(stop.size() + 1, 0)};
    for (size_t n = 2; n <= stop.size(); ++n) {
      size_t border = pattern.fallback[n - 1];
      while (border > 0 && stop[border] != stop[n - 1]) border = pattern.fallback[border];
      pattern.fallback[n] = stop[border] == stop[n - 1] ? border + 1 : 0;
    }
    patterns_.push_back(std::move(pattern));
  }
}

std::string StopMatcher::push(std::string_view piece) {
  std::string out;
  for (size_t i = 0; i < piece.size() && !stopped(); ++i) {
    held_ += piece[i];
    size_t hold = 0;
    for (size_t p = 0; p < patterns_.size(); ++p) {
      Pattern& pattern = patterns_[p];
      pattern.advance(piece[i]);
      hold = std::max(hold, pattern.matched);
      const bool is_whole = pattern.matched == pattern.text.size();
      if (is_whole && (!found_ || pattern.text.size() > patterns_[*found_].text.size())) found_ = p;
    }
    if (stopped()) {
      if (!include_stop_) held_.resize(held_.size() - patterns_[*found_].text.size());
      out += std::exchange(held_, {});
    } else if (held_.size() > hold) {
      out.append(held_, 0, held_.size() - hold);
      held_.erase(0, held_.size() - hold);
    }
  }
  return out;
}

std::string StopMatcher::pass(std::string_view piece) {
  if (stopped()) return {};
  for (Pattern& pattern : patterns_) pattern.matched = 0;
  return std::exchange(held_, {}) + std::string(piece);
}

std::string StopMatcher::finish() { return std::exchange(held_, {}); }

}  // namespace headrace
