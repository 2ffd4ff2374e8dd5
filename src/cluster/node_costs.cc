#include "cluster/node_costs.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace headrace::cluster {
namespace {

/// The member of UnitSeconds at that many rows.
double at_rows(const std::vector<UnitSeconds>& at, double UnitSeconds::*member, int32_t rows) noexcept {
  if (rows <= at.front().rows) return at.front().*member;
  if (at.size() == 1) return at.front().*member * rows / at.front().rows;
  auto above = std::ranges::find_if(at, [&](const UnitSeconds& point) { return point.rows >= rows; });
  if (above == at.end()) --above;
  const UnitSeconds& low = *(above - 1);
  const double share = static_cast<double>(rows - low.rows) / (above->rows - low.rows);
  return std::max(low.*member + ((*above).*member - low.*member) * share, 0.0);
}

}  // namespace

double NodeCosts::layer_seconds(const SublayerBytes& bytes, int32_t rows) const noexcept {
  const auto share = [](int64_t part, int64_t whole) { return static_cast<double>(part) / static_cast<double>(whole); };
  return at_rows(at, &UnitSeconds::attention_seconds, rows) * share(bytes.attention, probe_bytes.attention) +
         at_rows(at, &UnitSeconds::feed_forward_seconds, rows) * share(bytes.feed_forward, probe_bytes.feed_forward);
}

double NodeCosts::output_seconds(int32_t rows) const noexcept {
  return at_rows(at, &UnitSeconds::output_seconds, rows);
}

void check_costs(const NodeCosts& costs, const std::string& node) {
  const auto is_time = [](double seconds) { return std::isfinite(seconds) && seconds >= 0; };
  const auto fail = [&](const std::string& what) {
    throw Error(ErrorCode::kInvalidArgument, cat("costs of node ", printable(node), ": ", what));
  };
  if (costs.at.empty()) fail("none; expected the seconds of a layer and of the output for at least one number of rows");
  if (costs.probe_bytes.attention <= 0 || costs.probe_bytes.feed_forward <= 0) {
    fail(cat("a probe layer of ", costs.probe_bytes.attention, " bytes of attention and ",
             costs.probe_bytes.feed_forward, " of feed-forward"));
  }
  if (!is_time(costs.fixed_seconds)) fail(cat("a fixed part of ", costs.fixed_seconds, " s"));
  int32_t rows = 0;
  for (const UnitSeconds& point : costs.at) {
    if (point.rows <= rows) fail(cat(point.rows, " rows after ", rows, "; expected numbers that rise from 1"));
    if (!is_time(point.attention_seconds) || !is_time(point.feed_forward_seconds) || !is_time(point.output_seconds)) {
      fail(cat("at ", point.rows, " rows: attention ", point.attention_seconds, " s, feed-forward ",
               point.feed_forward_seconds, " s, output ", point.output_seconds, " s; expected times from 0"));
    }
    rows = point.rows;
  }
}

NodeCosts roofline(const DataSheet& sheet, const ModelUnits& model) {
  const SublayerUnit& attention = model.sublayers[0];
  const SublayerUnit& feed_forward = model.sublayers[1];
  const auto seconds = [&](int64_t bytes, double multiply_adds, int32_t rows) {
    const double reading = static_cast<double>(bytes) / (sheet.bytes_per_second * sheet.efficiency);
    const double computing = 2 * multiply_adds * rows / (sheet.operations_per_second * sheet.efficiency);
    return std::max(reading, computing);
  };
  NodeCosts costs{.probe_bytes = model.sublayer_bytes(0, kSublayers), .fixed_seconds = sheet.fixed_seconds};
  for (int32_t rows = 1; rows <= 1024; rows *= 2) {
    costs.at.push_back({.rows = rows,
                        .attention_seconds = seconds(attention.weight_bytes, attention.multiply_adds, rows),
                        .feed_forward_seconds = seconds(feed_forward.weight_bytes, feed_forward.multiply_adds, rows),
                        .output_seconds = seconds(model.output_bytes, model.output_multiply_adds, rows)});
  }
  return costs;
}

}  // namespace headrace::cluster
