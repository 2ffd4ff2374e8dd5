#include "base/log.h"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <cstdlib>
#include <memory>
#include <string_view>

namespace headrace {
namespace {

spdlog::level::level_enum level_from_environment() noexcept {
  const char* const value = std::getenv("HEADRACE_LOG");
  const std::string_view name = value != nullptr ? value : "";
  if (name == "debug") return spdlog::level::debug;
  if (name == "info") return spdlog::level::info;
  if (name == "off") return spdlog::level::off;
  return spdlog::level::warn;
}

/// nullptr where not even a logger could be made: logging never ends the program.
spdlog::logger* logger() noexcept {
  static const std::unique_ptr<spdlog::logger> instance = []() noexcept -> std::unique_ptr<spdlog::logger> {
    try {
      auto made = std::make_unique<spdlog::logger>("headrace", std::make_shared<spdlog::sinks::stderr_color_sink_mt>());
      made->set_pattern("%Y-%m-%dT%H:%M:%S.%e %^%l%$ %v");
      made->set_level(level_from_environment());
      made->flush_on(spdlog::level::debug);
      return made;
    } catch (...) {
      return nullptr;
    }
  }();
  return instance.get();
}

spdlog::level::level_enum spdlog_level(LogLevel level) noexcept {
  switch (level) {
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarn:
      break;
  }
  return spdlog::level::warn;
}

}  // namespace

bool log_enabled(LogLevel level) noexcept {
  const spdlog::logger* const log = logger();
  return log != nullptr && log->should_log(spdlog_level(level));
}

void log_line(LogLevel level, const std::string& text) noexcept {
  try {
    if (spdlog::logger* const log = logger()) log->log(spdlog_level(level), spdlog::string_view_t(text));
  } catch (...) {  // NOLINT: a line that cannot be written is dropped, as promised
  }
}

}  // namespace headrace
