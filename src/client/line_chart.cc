#include "client/line_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace headrace::client {
namespace {

constexpr double kWidth = 560, kHeight = 300;
constexpr double kLeft = 64, kRight = 16, kTop = 34, kBottom = 44;
constexpr size_t kColors = 6;

/// Maps values to places in the picture.
struct Frame {
  double x_most, y_most;
  [[nodiscard]] double x(double value) const { return kLeft + value / x_most * (kWidth - kLeft - kRight); }
  [[nodiscard]] double y(double value) const { return kHeight - kBottom - value / y_most * (kHeight - kTop - kBottom); }
};

double highest(const LineChart& chart, bool of_x) {
  double most = 0;
  for (const ChartSeries& series : chart.series) {
    for (const auto& [x, y] : series.points) most = std::max(most, of_x ? x : y);
  }
  return most > 0 && std::isfinite(most) ? most : 1;
}

std::string axes(const LineChart& chart, const Frame& frame, double x_tick, double y_tick) {
  std::string svg;
  for (double value = 0; value <= frame.y_most * (1 + 1e-9); value += y_tick) {
    const double y = frame.y(value);
    svg += fmt::format("<line class=\"grid\" x1=\"{}\" x2=\"{}\" y1=\"{:.1f}\" y2=\"{:.1f}\"/>", kLeft, kWidth - kRight,
                       y, y);
    svg += fmt::format("<text class=\"tick\" text-anchor=\"end\" x=\"{}\" y=\"{:.1f}\">{:g}</text>", kLeft - 6, y + 4,
                       std::abs(value) < y_tick / 2 ? 0 : value);
  }
  for (double value = 0; value <= frame.x_most * (1 + 1e-9); value += x_tick) {
    svg += fmt::format("<text class=\"tick\" text-anchor=\"middle\" x=\"{:.1f}\" y=\"{}\">{:g}</text>", frame.x(value),
                       kHeight - kBottom + 16, std::abs(value) < x_tick / 2 ? 0 : value);
  }
  svg += fmt::format("<text class=\"label\" text-anchor=\"middle\" x=\"{}\" y=\"{}\">{}</text>",
                     (kLeft + kWidth - kRight) / 2, kHeight - 8, escape_html(chart.x_label));
  svg +=
      fmt::format("<text class=\"label\" text-anchor=\"middle\" transform=\"translate(14 {}) rotate(-90)\">{}</text>",
                  (kTop + kHeight - kBottom) / 2, escape_html(chart.y_label));
  return svg;
}

}  // namespace

double tick_distance(double most_value, int most) {
  const double rough = most_value / most;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= rough * (1 - 1e-9)) return factor * power;
  }
  return 10 * power;
}

std::string escape_html(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      default:
        escaped += c;
    }
  }
  return escaped;
}

std::string chart_svg(const LineChart& chart) {
  const double x_tick = tick_distance(highest(chart, true), 8);
  const double y_tick = tick_distance(highest(chart, false), 6);
  const Frame frame{.x_most = std::ceil(highest(chart, true) / x_tick - 1e-9) * x_tick,
                    .y_most = std::ceil(highest(chart, false) / y_tick - 1e-9) * y_tick};
  std::string svg = fmt::format("<svg class=\"chart\" viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\">", kWidth,
                                kHeight, escape_html(chart.title));
  svg += fmt::format("<text class=\"title\" x=\"{}\" y=\"16\">{}</text>", kLeft, escape_html(chart.title));
  svg += axes(chart, frame, x_tick, y_tick);
  double legend_x = kLeft;
  for (size_t i = 0; i < chart.series.size(); ++i) {
    const ChartSeries& series = chart.series[i];
    const size_t color = i % kColors;
    std::string points;
    for (const auto& [x, y] : series.points) points += fmt::format("{:.1f},{:.1f} ", frame.x(x), frame.y(y));
    svg += fmt::format("<polyline class=\"c{}\" points=\"{}\"/>", color, points);
    for (const auto& [x, y] : series.points) {
      if (!chart.mark_points) break;
      svg += fmt::format(
          "<circle class=\"d{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\"><title>{}: {:g}, {:g}</title></circle>", color,
          frame.x(x), frame.y(y), escape_html(series.name), x, y);
    }
    if (chart.series.size() == 1) break;
    svg += fmt::format(
        "<circle class=\"d{}\" cx=\"{:.1f}\" cy=\"25\" r=\"4\"/><text class=\"tick\" x=\"{:.1f}\" "
        "y=\"29\">{}</text>",
        color, legend_x + 4, legend_x + 12, escape_html(series.name));
    legend_x += 28 + 6.2 * static_cast<double>(series.name.size());
  }
  return svg + "</svg>\n";
}

std::string_view chart_style() {
  return R"(:root{color-scheme:light dark;--page:#fff;--ink:#1b1f24;--soft:#59636e;--line:#d8dee4;
--c0:#0b62d0;--c1:#c2410c;--c2:#15803d;--c3:#7c3aed;--c4:#be185d;--c5:#0e7490}
@media(prefers-color-scheme:dark){:root{--page:#14171b;--ink:#e6e9ec;--soft:#9aa4ae;--line:#323940;
--c0:#6aa9ff;--c1:#ff9466;--c2:#5fd38a;--c3:#b794ff;--c4:#ff8fbf;--c5:#56cfe1}}
.chart{width:100%;max-width:560px}.chart .grid{stroke:var(--line)}.chart .tick{fill:var(--soft);font:11px sans-serif}
.chart .label{fill:var(--soft);font:12px sans-serif}.chart .title{fill:var(--ink);font:600 13px sans-serif}
.chart polyline{fill:none;stroke-width:2}
.c0{stroke:var(--c0)}.c1{stroke:var(--c1)}.c2{stroke:var(--c2)}.c3{stroke:var(--c3)}.c4{stroke:var(--c4)}.c5{stroke:var(--c5)}
.d0{fill:var(--c0)}.d1{fill:var(--c1)}.d2{fill:var(--c2)}.d3{fill:var(--c3)}.d4{fill:var(--c4)}.d5{fill:var(--c5)}
)";
}

}  // namespace headrace::client
