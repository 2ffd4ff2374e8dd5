#include "cluster/start_phase.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace headrace::cluster {
namespace {

std::string megabytes_text(int64_t bytes) { return fmt::format("{:.1f} MB", static_cast<double>(bytes) * 1e-6); }

std::string share_text(double share) { return fmt::format("{:.0f} %", 100 * std::clamp(share, 0.0, 1.0)); }

}  // namespace

PhaseReport::PhaseReport(std::string node, const StartPhase& phase, Tell tell, std::chrono::duration<double> pause)
    : node_(std::move(node)), phase_(phase), tell_(std::move(tell)), pause_seconds_(pause.count()) {}

bool PhaseReport::is_time() {
  const double now = watch_.seconds();
  if (now - told_ < pause_seconds_) return false;
  told_ = now;
  return true;
}

void PhaseReport::progress(double share) {
  if (is_time()) tell(share_text(share));
}

void PhaseReport::progress_bytes(int64_t sent, int64_t all) {
  if (!is_time() || all <= 0) return;
  const double rate = static_cast<double>(sent) / std::max(watch_.seconds(), 1e-9);
  tell(fmt::format("{} of {} ({}), {:.1f} MB/s", megabytes_text(sent), megabytes_text(all),
                   share_text(static_cast<double>(sent) / static_cast<double>(all)), rate * 1e-6));
}

void PhaseReport::done(const std::string& detail) const {
  tell(fmt::format("done in {:.1f} s{}{}", watch_.seconds(), detail.empty() ? "" : ", ", detail));
}

Error PhaseReport::failure(const Error& error) const {
  std::string_view what = error.message();
  if (what.starts_with(node_) && what.substr(node_.size()).starts_with(": ")) what.remove_prefix(node_.size() + 2);
  std::string text = cat(node_, ": ", phase_.name, ": ", what);
  if (error.code() == ErrorCode::kTimeout) text += cat(" (limit ", phase_.limit_seconds, " s)");
  const bool is_from_elsewhere = error.code() == ErrorCode::kTimeout || error.code() == ErrorCode::kUnavailable ||
                                 error.code() == ErrorCode::kCorrupt;  // as of another program that listens there
  if (is_from_elsewhere) text += cat("; ", phase_.remedy);
  return Error(error.code(), text);
}

}  // namespace headrace::cluster
