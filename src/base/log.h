#pragma once

#include <fmt/format.h>

#include <string>
#include <utility>

namespace headrace {

enum class LogLevel { kDebug, kInfo, kWarn };

/// Whether lines of this level are written: HEADRACE_LOG = debug, info, warn or off, read once; warn where it is not
/// set.
[[nodiscard]] bool log_enabled(LogLevel level) noexcept;
/// Writes one line to standard error. Any thread. What cannot be written is dropped.
void log_line(LogLevel level, const std::string& text) noexcept;

/// log_warn("rms_norm: {} skipped", name)
template <class... Args>
void log_debug(fmt::format_string<Args...> format, Args&&... args) {
  if (log_enabled(LogLevel::kDebug)) log_line(LogLevel::kDebug, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void log_info(fmt::format_string<Args...> format, Args&&... args) {
  if (log_enabled(LogLevel::kInfo)) log_line(LogLevel::kInfo, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void log_warn(fmt::format_string<Args...> format, Args&&... args) {
  if (log_enabled(LogLevel::kWarn)) log_line(LogLevel::kWarn, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace headrace
