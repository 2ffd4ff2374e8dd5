#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "client/request_record.h"

namespace headrace::client {

/// Least number of bytes to insert, delete or replace (Levenshtein, 1966).
[[nodiscard]] int64_t edit_distance(std::string_view a, std::string_view b);

/// ROUGE-W (Lin, "ROUGE: A Package for Automatic Evaluation of Summaries", 2004) over words: the F measure, with equal
/// weight for precision and recall, of the weighted longest common subsequence, f(k) = k^1.2. 1: the same words.
[[nodiscard]] double rouge_w(std::string_view a, std::string_view b);

struct AnswerDifference {
  int32_t index = 0;
  int64_t first_mismatch_byte = 0;
  int64_t first_mismatch_word = 0;
  double same_share = 0;  ///< 1 - edit distance / length of the longer
  double rouge_w = 0;
};

/// Two runs of the same requests, compared answer by answer.
struct AnswerDiff {
  int64_t compared = 0;  ///< completed in both
  int64_t only_in_one = 0;
  std::vector<AnswerDifference> differences;
  double mean_same_share = 1, mean_rouge_w = 1;  ///< over all that were compared
};
[[nodiscard]] AnswerDiff compare_answers(std::span<const RequestRecord> a, std::span<const RequestRecord> b);

/// Markdown: the counts, and the first few differences.
[[nodiscard]] std::string diff_text(const AnswerDiff& diff);

}  // namespace headrace::client
