#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace headrace::client {

struct ChartSeries {
  std::string name;
  std::vector<std::pair<double, double>> points;  ///< in the order in which they are joined
};

struct LineChart {
  std::string title;
  std::string x_label, y_label;
  std::vector<ChartSeries> series;
  bool mark_points = false;
};

/// The chart as an SVG element for a page whose style sheet is chart_style(). Both axes begin at 0.
[[nodiscard]] std::string chart_svg(const LineChart& chart);

/// Style sheet of the charts, for light and dark pages.
[[nodiscard]] std::string_view chart_style();

/// Distances of at most `most` marks on an axis from 0 to `highest`: 1, 2 or 5 times a power of ten.
[[nodiscard]] double tick_distance(double highest, int most);

/// `text` with the characters of markup replaced.
[[nodiscard]] std::string escape_html(std::string_view text);

}  // namespace headrace::client
