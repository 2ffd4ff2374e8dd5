#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace headrace {

/// Looks for stop texts in an answer that comes in pieces. Holds back only what may be the beginning of one, so nothing
/// of a stop text is ever given out. The result does not depend on where the pieces are cut: the stop text that is
/// complete first ends the answer, the longest of those that end at the same place.
class StopMatcher {
 public:
  /// `stops`: not empty each. `include_stop`: the stop text itself is given out.
  explicit StopMatcher(std::span<const std::string> stops, bool include_stop = false);

  /// Takes the next piece and returns what of the text may now be given out. After a stop text was found: nothing more.
  [[nodiscard]] std::string push(std::string_view piece);
  /// Takes a piece in which stop texts do not count, nor their beginnings (an answer that is too short to end).
  [[nodiscard]] std::string pass(std::string_view piece);
  /// The end of the answer: what was held back.
  [[nodiscard]] std::string finish();
  [[nodiscard]] bool stopped() const noexcept { return found_.has_value(); }
  /// The stop text that ended the answer, by its index.
  [[nodiscard]] std::optional<size_t> found() const noexcept { return found_; }

 private:
  /// One stop text as a Knuth-Morris-Pratt automaton.
  struct Pattern {
    std::string text;
    std::vector<size_t> fallback;  // [n]: length of the longest proper border of the first n bytes
    size_t matched = 0;            // bytes of text that the answer now ends with
    void advance(char c) noexcept;
  };

  std::vector<Pattern> patterns_;
  std::string held_;  // as long as the longest `matched`
  bool include_stop_;
  std::optional<size_t> found_;
};

}  // namespace headrace
