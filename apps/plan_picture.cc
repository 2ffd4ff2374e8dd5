#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "apps/plan_report.h"
#include "base/error.h"
#include "client/line_chart.h"

namespace headrace {
namespace {

constexpr int kWidth = 760;
constexpr int kLeft = 90;  // where bars begin
constexpr int kBar = 640;  // their longest
constexpr int kNodeHeight = 86;
constexpr int kTop = 46;

std::string bar(double x, int y, double width, int color, const std::string& title) {
  return fmt::format(R"(<rect x="{:.1f}" y="{}" width="{:.1f}" height="16" class="d{}"><title>{}</title></rect>)", x, y,
                     std::max(width, 0.0), color, client::escape_html(title));
}

std::string text(int x, int y, std::string_view style, const std::string& words) {
  return fmt::format(R"(<text x="{}" y="{}" class="{}">{}</text>)", x, y, style, client::escape_html(words));
}

std::string frame(int y, double width) {
  return fmt::format(R"(<rect x="{}" y="{}" width="{:.1f}" height="16" class="frame"/>)", kLeft, y, width);
}

std::string node_bars(const PlanFindings& f, size_t i, int y, double largest_memory) {
  const cluster::NodeShare& share = f.placement.nodes[i];
  const auto memory = static_cast<double>(f.nodes[i].offer.memory_bytes);
  std::string svg =
      text(10, y + 12, "title",
           fmt::format("{}: {}; {:.0f} of {:.0f} MB", printable(f.nodes[i].offer.name), units_text(share.units),
                       static_cast<double>(share.memory_bytes()) / 1e6, memory / 1e6));
  svg += text(10, y + 36, "label", "memory");
  double x = kLeft;
  const auto part = [&](int64_t bytes, int color, std::string_view name) {
    const double width = static_cast<double>(bytes) / largest_memory * kBar;
    svg += bar(x, y + 23, width, color, fmt::format("{}: {:.1f} MB", name, static_cast<double>(bytes) / 1e6));
    x += width;
  };
  part(share.weight_bytes, 0, "weights");
  part(share.workspace_bytes, 1, "workspace");
  part(share.kv_bytes, 2, "KV cache");
  svg += frame(y + 23, memory / largest_memory * kBar);
  svg += text(10, y + 60, "label", "step");
  const double longest = f.placement.slowest_seconds > 0 ? f.placement.slowest_seconds : 1;
  svg += bar(kLeft, y + 47, share.compute_seconds / longest * kBar, 3,
             fmt::format("{:.3g} ms", share.compute_seconds * 1e3));
  svg += frame(y + 47, kBar);
  svg += text(kLeft + 4, y + 60, "label", fmt::format("{:.3g} ms", share.compute_seconds * 1e3));
  return svg;
}

}  // namespace

std::string plan_svg(const PlanFindings& f) {
  double largest_memory = 0;
  for (const cluster::DescribedNode& node : f.nodes) {
    largest_memory = std::max(largest_memory, static_cast<double>(node.offer.memory_bytes));
  }
  const int height = kTop + kNodeHeight * static_cast<int>(f.nodes.size());
  std::string svg = fmt::format(
      R"(<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {0} {1}" width="{0}" height="{1}">)"
      "<style>{2} .title{{fill:var(--ink);font:600 13px sans-serif}} .label{{fill:var(--ink);font:12px sans-serif}} "
      ".frame{{fill:none;stroke:var(--soft)}}</style>"
      R"svg(<rect width="{0}" height="{1}" style="fill:var(--page)"/>)svg",
      kWidth, height, client::chart_style());
  const std::string name = std::filesystem::path(f.model).filename().string();
  svg += text(10, 20, "title",
              fmt::format("{}: {:.1f} output tokens/s with {} clients, {} KV tokens", printable(name, 40),
                          f.prediction.load.output_rate, f.load.clients, f.placement.kv_tokens));
  int x = 10;
  int color = 0;
  for (const std::string_view part : {"weights", "workspace", "KV cache", "step at the reference rows"}) {
    svg += fmt::format(R"(<rect x="{}" y="27" width="10" height="10" class="d{}"/>)", x, color++);
    svg += text(x + 14, 36, "label", std::string(part));
    x += 90;
  }
  for (size_t i = 0; i < f.nodes.size(); ++i) {
    svg += node_bars(f, i, kTop + kNodeHeight * static_cast<int>(i), largest_memory);
  }
  return svg + "</svg>\n";
}

}  // namespace headrace
