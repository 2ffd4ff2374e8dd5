#include "cluster/reception.h"

#include <algorithm>
#include <exception>

#include "base/log.h"
#include "cluster/newcomer_place.h"
#include "cluster/time_limits.h"

namespace headrace::cluster {
namespace {

/// Whoever sends many bad peers must not fill the log.
constexpr double kSecondsBetweenReports = 1;

}  // namespace

Reception::Reception(std::unique_ptr<Listener> listener, Credentials mine, DataKeys* keys, Welcome welcome,
                     double limit_s)
    : listener_(std::move(listener)),
      mine_(std::move(mine)),
      keys_(keys),
      welcome_(std::move(welcome)),
      limit_s_(limit_s),
      thread_([this] { run(); }) {}

Reception::~Reception() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
    for (const Visit& visit : visits_)
      if (visit.link) visit.link->close();
  }
  changed_.notify_all();
  listener_->close();
  thread_.join();
  for (Visit& visit : visits_) visit.thread.join();
}

bool Reception::make_room() {
  std::unique_lock lock(mutex_);
  while (true) {
    for (auto visit = visits_.begin(); visit != visits_.end();) {
      if (!visit->done) {
        ++visit;
        continue;
      }
      visit->thread.join();  // at its last line
      visit = visits_.erase(visit);
    }
    if (closing_) return false;
    if (visits_.size() < static_cast<size_t>(kMaxUnknownPeers)) return true;
    if (std::ranges::none_of(visits_, &Visit::is_sent_away)) send_one_away();
    changed_.wait(lock);
  }
}

void Reception::send_one_away() {
  std::vector<Visit*> unknown;
  std::vector<std::string_view> peers;
  for (Visit& visit : visits_) {
    if (!visit.link) continue;  // known, and being welcomed
    unknown.push_back(&visit);
    peers.push_back(visit.link->peer());
  }
  if (unknown.empty()) return;
  Visit& visit = *unknown[place_for_newcomer(peers)];
  visit.is_sent_away = true;
  visit.link->close();
}

void Reception::run() noexcept {
  while (true) {
    Result<std::unique_ptr<Link>> link = listener_->accept(kNoDeadline);
    if (!link || !make_room()) return;
    const std::lock_guard lock(mutex_);
    if (closing_) return;
    Visit& visit = visits_.emplace_back();
    visit.link = std::move(link).value();
    try {
      visit.thread = std::thread([this, &visit] { receive(visit); });
    } catch (const std::exception& error) {  // no thread to be had: this peer has to come again
      log_warn("{}: not served: {}", visit.link->peer(), error.what());
      visits_.pop_back();
    }
  }
}

void Reception::report(const Error& error, const Visit& visit) {
  const std::lock_guard lock(mutex_);
  const Deadline now = std::chrono::steady_clock::now();
  if (closing_ || now < next_report_) {
    ++num_unreported_;
    return;
  }
  next_report_ = after(kSecondsBetweenReports);
  const std::string more = num_unreported_ > 0 ? cat(" (and ", num_unreported_, " others before)") : std::string();
  num_unreported_ = 0;
  const std::string why =
      visit.is_sent_away ? cat(visit.link->peer(), ": has not said who it is before ", kMaxUnknownPeers, " others came")
                         : error.message();
  log_warn("no link: {}{}", why, more);
}

void Reception::receive(Visit& visit) noexcept {
  Link& link = *visit.link;
  Result<PeerHello> peer = answer_handshake(link, mine_, keys_, after(limit_s_));
  std::unique_ptr<Link> known;
  if (peer) {
    const std::lock_guard lock(mutex_);
    if (!closing_) known = std::move(visit.link);
  } else {
    report(peer.error(), visit);
  }
  if (known) welcome_(std::move(known), std::move(peer).value());
  const std::lock_guard lock(mutex_);
  visit.link.reset();
  visit.done = true;
  changed_.notify_all();
}

}  // namespace headrace::cluster
