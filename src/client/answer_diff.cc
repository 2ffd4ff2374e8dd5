#include "client/answer_diff.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "client/words.h"

namespace headrace::client {
namespace {

constexpr double kRougeWeight = 1.2;

template <class Sequence>
size_t common_prefix(const Sequence& a, const Sequence& b) {
  return static_cast<size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
}

/// Weight of the heaviest common subsequence, where a run of k words in both weighs k^1.2.
double weighted_lcs(const std::vector<std::string_view>& a, const std::vector<std::string_view>& b) {
  const auto f = [](double k) { return std::pow(k, kRougeWeight); };
  std::vector<double> weight(b.size() + 1), weight_above(b.size() + 1);
  std::vector<double> run(b.size() + 1), run_above(b.size() + 1);
  for (const std::string_view word : a) {
    std::swap(weight, weight_above);
    std::swap(run, run_above);
    for (size_t j = 0; j < b.size(); ++j) {
      if (word == b[j]) {
        const double k = run_above[j];
        weight[j + 1] = weight_above[j] + f(k + 1) - f(k);
        run[j + 1] = k + 1;
      } else {
        weight[j + 1] = std::max(weight_above[j + 1], weight[j]);
        run[j + 1] = 0;
      }
    }
  }
  return weight.back();
}

AnswerDifference difference_of(int32_t index, const std::string& a, const std::string& b) {
  const auto longer = static_cast<double>(std::max(a.size(), b.size()));
  return {.index = index,
          .first_mismatch_byte = static_cast<int64_t>(common_prefix(a, b)),
          .first_mismatch_word = static_cast<int64_t>(common_prefix(split_words(a), split_words(b))),
          .same_share = 1 - static_cast<double>(edit_distance(a, b)) / longer,
          .rouge_w = rouge_w(a, b)};
}

}  // namespace

int64_t edit_distance(std::string_view a, std::string_view b) {
  const size_t prefix = common_prefix(a, b);
  a.remove_prefix(prefix);
  b.remove_prefix(prefix);
  while (!a.empty() && !b.empty() && a.back() == b.back()) a.remove_suffix(1), b.remove_suffix(1);
  std::vector<int64_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), int64_t{0});
  for (const char c : a) {
    int64_t diagonal = row[0]++;
    for (size_t j = 0; j < b.size(); ++j) {
      const int64_t replaced = diagonal + (c == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, diagonal + 1});
    }
  }
  return row.back();
}

double rouge_w(std::string_view a, std::string_view b) {
  const std::vector<std::string_view> in_a = split_words(a);
  const std::vector<std::string_view> in_b = split_words(b);
  if (in_a.empty() || in_b.empty()) return in_a.empty() && in_b.empty() ? 1 : 0;
  // f^-1(W / f(n)) = W^(1 / 1.2) / n
  const double common = std::pow(weighted_lcs(in_a, in_b), 1 / kRougeWeight);
  const double recall = common / static_cast<double>(in_a.size());
  const double precision = common / static_cast<double>(in_b.size());
  return common > 0 ? 2 * recall * precision / (recall + precision) : 0;
}

AnswerDiff compare_answers(std::span<const RequestRecord> a, std::span<const RequestRecord> b) {
  std::map<int32_t, const RequestRecord*> others;
  for (const RequestRecord& record : b) {
    if (record.status == RequestStatus::kCompleted) others[record.index] = &record;
  }
  AnswerDiff diff;
  diff.only_in_one = std::ssize(others);
  double same = 0, rouge = 0;
  for (const RequestRecord& record : a) {
    if (record.status != RequestStatus::kCompleted) continue;
    const auto other = others.find(record.index);
    if (other == others.end()) {
      ++diff.only_in_one;
      continue;
    }
    --diff.only_in_one;
    ++diff.compared;
    if (record.text == other->second->text) {
      same += 1;
      rouge += 1;
      continue;
    }
    diff.differences.push_back(difference_of(record.index, record.text, other->second->text));
    same += diff.differences.back().same_share;
    rouge += diff.differences.back().rouge_w;
  }
  if (diff.compared > 0) {
    diff.mean_same_share = same / static_cast<double>(diff.compared);
    diff.mean_rouge_w = rouge / static_cast<double>(diff.compared);
  }
  return diff;
}

std::string diff_text(const AnswerDiff& diff) {
  constexpr size_t kMostShown = 20;
  std::string text = fmt::format(
      "{} answers compared, {} the same, {} differ, {} in one run only; same text {:.2f} % (Levenshtein), ROUGE-W "
      "{:.4f}\n",
      diff.compared, diff.compared - std::ssize(diff.differences), diff.differences.size(), diff.only_in_one,
      100 * diff.mean_same_share, diff.mean_rouge_w);
  if (diff.differences.empty()) return text;
  text += "\n| request | first mismatch, byte | word | same text | ROUGE-W |\n|---:|---:|---:|---:|---:|\n";
  for (size_t i = 0; i < std::min(diff.differences.size(), kMostShown); ++i) {
    const AnswerDifference& d = diff.differences[i];
    text += fmt::format("| {} | {} | {} | {:.2f} % | {:.4f} |\n", d.index, d.first_mismatch_byte, d.first_mismatch_word,
                        100 * d.same_share, d.rouge_w);
  }
  if (diff.differences.size() > kMostShown) {
    text += fmt::format("\n{} more\n", diff.differences.size() - kMostShown);
  }
  return text;
}

}  // namespace headrace::client
