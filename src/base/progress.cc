#include "base/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "base/cat.h"

namespace headrace {
namespace {

constexpr auto kRedraw = std::chrono::milliseconds(100);
constexpr auto kPlainLine = std::chrono::seconds(30);
constexpr int32_t kBarColumns = 24;

std::string bytes_text(double bytes) {
  return bytes >= 1e9 ? fmt::format("{:.2f} GB", bytes / 1e9) : fmt::format("{:.1f} MB", bytes / 1e6);
}

double seconds_between(std::chrono::steady_clock::time_point from, std::chrono::steady_clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

}  // namespace

ProgressOutput ProgressOutput::standard_error() {
  winsize size{};
  const bool known = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return {.is_terminal = isatty(STDERR_FILENO) != 0,
          .columns = known ? size.ws_col : 80,
          .write = [](std::string_view text) {
            std::fwrite(text.data(), 1, text.size(), stderr);
            std::fflush(stderr);
          }};
}

ProgressLine::ProgressLine(std::string label, double total, ProgressUnit unit, ProgressOutput output, Clock clock)
    : label_(std::move(label)),
      total_(total),
      unit_(unit),
      output_(std::move(output)),
      clock_(std::move(clock)),
      start_(clock_()),
      shown_at_(start_) {}

ProgressLine::ProgressLine(std::string label, double total, ProgressUnit unit)
    : ProgressLine(std::move(label), total, unit, ProgressOutput::standard_error(),
                   [] { return std::chrono::steady_clock::now(); }) {}

ProgressLine::~ProgressLine() {
  if (is_drawn_) output_.write("\r\x1b[K");
}

std::string ProgressLine::line(double share, double seconds, double done) const {
  std::string text = fmt::format("{:3.0f} %", share * 100);
  if (unit_ == ProgressUnit::kBytes) {
    text += cat("  ", bytes_text(done), " of ", bytes_text(total_));
    if (seconds > 0.5) text += cat("  ", bytes_text(done / seconds), "/s");
  }
  return text;
}

void ProgressLine::update(double done) {
  const auto now = clock_();
  const double share = std::clamp(done / total_, 0.0, 1.0);
  const double seconds = seconds_between(start_, now);
  if (!output_.is_terminal) {
    if (now - shown_at_ < kPlainLine) return;
    shown_at_ = now;
    output_.write(cat(label_, ": ", line(share, seconds, done), "\n"));
    return;
  }
  if (is_drawn_ && now - shown_at_ < kRedraw) return;
  shown_at_ = now;
  is_drawn_ = true;
  const auto filled = static_cast<int32_t>(share * kBarColumns);
  std::string text = cat(label_, " [", std::string(static_cast<size_t>(filled), '#'),
                         std::string(static_cast<size_t>(kBarColumns - filled), '.'), "] ", line(share, seconds, done));
  // A line that wraps could not be wiped.
  text.resize(std::min(text.size(), static_cast<size_t>(std::max(output_.columns - 1, 1))));
  output_.write(cat("\r", text, "\x1b[K"));
}

}  // namespace headrace
