#include "cluster/join_desk.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/log.h"
#include "cluster/named_error.h"
#include "cluster/time_limits.h"

namespace headrace::cluster {
namespace {

constexpr size_t kMaxNameBytes = 64;
constexpr std::string_view kJoin = "join ";
/// Of whom the reason is kept for which they are not taken.
constexpr size_t kMostRefused = 256;
/// Between two looks at who is still there.
constexpr std::chrono::seconds kLookPause{1};
/// Between two lines about who is missing, while nothing changes.
constexpr double kTellSeconds = 10;

std::string list_text(const std::vector<std::string>& names) { return fmt::to_string(fmt::join(names, ", ")); }

/// "1 of 3 has joined (b), 2 are missing (a, c)"
std::string count_text(const std::vector<std::string>& names, size_t wanted, const std::vector<std::string>& all) {
  std::vector<std::string> absent;
  for (const std::string& name : all) {
    if (std::ranges::find(names, name) == names.end()) absent.push_back(name);
  }
  const size_t missing = wanted - std::min(wanted, names.size());
  return cat(names.size(), " of ", wanted, names.size() == 1 ? " has joined" : " have joined",
             names.empty() ? "" : cat(" (", list_text(names), ")"), ", ", missing,
             missing == 1 ? " is missing" : " are missing", absent.empty() ? "" : cat(" (", list_text(absent), ")"));
}

void ask_how_it_is(Caller& caller) {
  caller.description = read_description(caller.control->ask("describe", {}, kHandshakeSeconds));
}

bool answers(Caller& caller) {
  try {
    ask_how_it_is(caller);
    return true;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

bool is_worker_name(std::string_view name) noexcept {
  return !name.empty() && name != "head" && name.size() <= kMaxNameBytes && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
           c == '-';
  });
}

std::string join_purpose(std::string_view name) { return cat(kJoin, name); }

JoinDesk::JoinDesk(const std::string& listen, const TlsFiles& tls, const Credentials& mine, Places places, Check check)
    : check_(std::move(check)),
      places_(std::move(places)),
      reception_(std::make_unique<Reception>(
          listen_tcp(listen, tls, "--join-listen"), mine, &keys_,
          [this](std::unique_ptr<Link> link, const PeerHello& hello) { welcome(std::move(link), hello); })) {}

void JoinDesk::welcome(std::unique_ptr<Link> link, const PeerHello& hello) {
  if (hello.purpose.starts_with(kJoin)) {
    receive(std::move(link), hello, hello.purpose.substr(kJoin.size()));
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    const auto expected = expected_.find(hello.purpose);
    if (expected != expected_.end()) expected->second = std::move(link);
  }
  changed_.notify_all();
}

std::string JoinDesk::obstacle(const std::string& name) const {
  if (taken_.contains(name)) return cat("a worker of the name ", name, " is at work; --name gives this one another");
  if (callers_.contains(name)) return cat("a worker of the name ", name, " waits here; --name gives this one another");
  if (!places_.names.empty() && std::ranges::find(places_.names, name) == places_.names.end()) {
    return cat("there are places for ", list_text(places_.names), " only");
  }
  return {};
}

void JoinDesk::receive(std::unique_ptr<Link> link, const PeerHello& hello, std::string name) {
  const std::string peer = link->peer();
  Caller caller{.name = name,
                .peer = peer,
                .identity = hello.identity,
                .description = {},
                .control = std::make_unique<ControlClient>(std::move(link), name)};
  try {
    if (hello.role != "worker" || !is_worker_name(name)) {
      throw Error(ErrorCode::kInvalidArgument, "no worker, or one with an odd name");
    }
    ask_how_it_is(caller);
    check_(caller);
    drop_silent(name);  // maybe an earlier life of this one
    {
      const std::lock_guard lock(mutex_);
      const std::string why = obstacle(name);
      if (!why.empty()) throw Error(ErrorCode::kUnavailable, why);
      callers_.emplace(name, std::move(caller));
    }
    changed_.notify_all();
  } catch (const std::exception& error) {
    const std::string why = printable(error.what(), 400);
    if (is_news(name, why)) log_warn("worker {} ({}) is not taken: {}", printable(name), peer, why);
    try {
      caller.control->ask("leave", {{"why", why}}, kHandshakeSeconds);
    } catch (const std::exception&) {
      // It is gone, or sees that the connection is.
    }
  }
}

bool JoinDesk::is_news(const std::string& name, const std::string& why) {
  const std::lock_guard lock(mutex_);
  if (refused_.size() >= kMostRefused) refused_.clear();
  return std::exchange(refused_[name], why) != why;
}

void JoinDesk::drop_silent(const std::string& name) {
  // Asked outside of the lock, and out of reach of others meanwhile.
  std::map<std::string, Caller>::node_type caller;
  {
    const std::lock_guard lock(mutex_);
    caller = callers_.extract(name);
  }
  if (caller.empty() || !answers(caller.mapped())) return;
  {
    const std::lock_guard lock(mutex_);
    callers_.insert(std::move(caller));
  }
  changed_.notify_all();
}

std::vector<std::string> JoinDesk::present() const {
  std::vector<std::string> names;
  for (const std::string& name : places_.names) {
    if (callers_.contains(name)) names.push_back(name);
  }
  if (!places_.names.empty()) return names;
  for (const auto& [name, caller] : callers_) names.push_back(name);
  return names;
}

std::vector<std::string> JoinDesk::gather(double seconds) {
  const Deadline deadline = after(seconds);
  std::vector<std::string> told;
  Deadline next_line{};
  while (true) {
    std::unique_lock lock(mutex_);
    std::vector<std::string> names = present();
    lock.unlock();
    for (const std::string& name : names) drop_silent(name);
    lock.lock();
    names = present();
    const std::string text = count_text(names, places_.number, places_.names);
    const Deadline now = std::chrono::steady_clock::now();
    if (names != told || now >= next_line) {
      log_info("workers: {}", text);
      told = names;
      next_line = after(kTellSeconds);
    }
    if (names.size() >= places_.number) {
      names.resize(places_.number);
      places_.names = names;
      return names;
    }
    if (now >= deadline) {
      throw Error(ErrorCode::kTimeout, cat("workers: ", text, " after ", seconds,
                                           " s; start 'headrace worker --join' with this machine's address and port ",
                                           port(), " there, or give --join-timeout more seconds"));
    }
    changed_.wait_for(lock, kLookPause, [&] { return present() != names; });
  }
}

std::vector<std::string> JoinDesk::missing(const std::vector<std::string>& names, Deadline deadline) {
  std::vector<std::string> absent;
  const auto all_there = [&] {
    absent.clear();
    for (const std::string& name : names) {
      if (!callers_.contains(name)) absent.push_back(name);
    }
    return absent.empty();
  };
  std::unique_lock lock(mutex_);
  changed_.wait_until(lock, deadline, all_there);
  return absent;
}

std::optional<Caller> JoinDesk::take(const std::string& name) {
  const std::lock_guard lock(mutex_);
  auto node = callers_.extract(name);
  if (node.empty()) return std::nullopt;
  taken_.insert(name);
  return std::move(node.mapped());
}

void JoinDesk::release(const std::string& name) {
  const std::lock_guard lock(mutex_);
  taken_.erase(name);
}

Result<std::unique_ptr<Link>> JoinDesk::fetch(
    const std::function<void(const std::string& announced_as, const std::string& key)>& dial,
    const std::string& purpose, double seconds) {
  std::string word;
  {
    const std::lock_guard lock(mutex_);
    word = cat(purpose, ' ', ++num_expected_);
    expected_.emplace(word, nullptr);
  }
  try {
    dial(word, keys_.issue(word));
  } catch (const Error&) {
    const std::lock_guard lock(mutex_);
    expected_.erase(word);
    throw;
  }
  std::unique_lock lock(mutex_);
  changed_.wait_until(lock, after(seconds), [&] { return expected_.at(word) != nullptr; });
  std::unique_ptr<Link> link = std::move(expected_.extract(word).mapped());
  if (!link)
    return Error(ErrorCode::kTimeout, cat("the connection for ", purpose, " has not come within ", seconds, " s"));
  return link;
}

}  // namespace headrace::cluster
