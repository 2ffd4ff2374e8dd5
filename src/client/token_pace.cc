#include "client/token_pace.h"

#include <algorithm>

namespace headrace::client {
namespace {

bool first_is_in_time(const RequestRecord& record, const PaceRule& rule) {
  if (record.status != RequestStatus::kCompleted || record.token_times.empty()) return false;
  return record.token_times.front() - record.sent <= static_cast<double>(input_tokens(record)) / rule.prompt_rate;
}

}  // namespace

std::vector<double> moving_averages(std::span<const double> values, double span) {
  const double keep = 1 - 2 / (span + 1);
  double sum = 0, weights = 0;
  std::vector<double> averages;
  for (const double value : values) {
    sum = sum * keep + value;
    weights = weights * keep + 1;
    averages.push_back(sum / weights);
  }
  return averages;
}

std::vector<double> token_gaps(const RequestRecord& record) {
  std::vector<double> gaps;
  for (size_t i = 1; i < record.token_times.size(); ++i) {
    gaps.push_back(record.token_times[i] - record.token_times[i - 1]);
  }
  return gaps;
}

bool keeps_pace_by_averages(const RequestRecord& record, const PaceRule& rule) {
  if (!first_is_in_time(record, rule)) return false;
  return std::ranges::all_of(moving_averages(token_gaps(record), rule.ema_span),
                             [&](double average) { return average < 1 / rule.answer_rate; });
}

bool keeps_pace_by_sums(const RequestRecord& record, const PaceRule& rule) {
  if (!first_is_in_time(record, rule)) return false;
  double sum = 0;
  double count = 0;
  return std::ranges::all_of(token_gaps(record), [&](double gap) {
    sum += gap;
    count += 1;
    return sum <= count / rule.answer_rate;
  });
}

PaceFigures pace_figures(std::span<const RequestRecord> records) {
  int64_t count = 0;
  double begin = 0, end = 0;
  for (const RequestRecord& record : records) {
    if (record.status == RequestStatus::kCancelled) continue;
    begin = count == 0 ? record.sent : std::min(begin, record.sent);
    end = count == 0 ? record.end : std::max(end, record.end);
    ++count;
  }
  const auto effective = [&](const PaceRule& rule, auto keeps_pace) {
    const auto good = static_cast<double>(
        std::ranges::count_if(records, [&](const RequestRecord& record) { return keeps_pace(record, rule); }));
    return EffectiveThroughput{.answer_rate = rule.answer_rate,
                               .good_ratio = count > 0 ? good / static_cast<double>(count) : 0,
                               .rate = end > begin ? good / (end - begin) : 0};
  };
  PaceFigures figures;
  for (const double rate : {1.0, 2.0, 3.0, 4.0, 6.0, 8.0}) {
    const PaceRule rule{.answer_rate = rate};
    figures.by_averages.push_back(effective(rule, keeps_pace_by_averages));
    figures.by_sums.push_back(effective(rule, keeps_pace_by_sums));
  }
  return figures;
}

}  // namespace headrace::client
