#include "cluster/worker.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/log.h"
#include "cluster/credentials.h"
#include "cluster/join_desk.h"
#include "cluster/memory_budget.h"
#include "cluster/message.h"
#include "cluster/time_limits.h"
#include "engine/tuning_file.h"

namespace headrace::cluster {
namespace {

/// A head that connects again may be here before its last connection is known to be gone.
constexpr std::chrono::seconds kOldHeadLeaves{5};

/// Between two calls of a head; longer each time that it cannot be reached.
constexpr double kFirstPauseSeconds = 0.1;
constexpr double kLongestPauseSeconds = 2;

/// Answers its first question with a refusal.
void refuse(Link& link, const std::string& why) {
  uint64_t id = 0;
  std::vector<std::byte> payload;
  if (!receive_message(link, id, payload, after(kHandshakeSeconds))) return;
  (void)send_message(link, id, error_message(Error(ErrorCode::kUnavailable, why)), after(kHandshakeSeconds));
}

}  // namespace

Worker::Worker(WorkerConfig config)
    : config_(std::move(config)),
      credentials_(credentials_of("worker", config_.secret_file)),
      network_(make_tcp_network(config_.tls)),
      machine_(config_.isa, config_.threads, load_tuning(config_.isa, config_.threads)),
      server_([this] { serve_heads(); }) {
  // Once: what one head has made it pack is not free when the next comes, or when the same comes back.
  config_.memory_bytes = memory_budget(config_.memory_bytes);
  try {
    std::unique_ptr<Listener> listener = listen_tcp(config_.listen, config_.tls, "--listen");
    config_.listen = cat(config_.listen.substr(0, config_.listen.rfind(':') + 1), listener->port());
    reception_ = std::make_unique<Reception>(
        std::move(listener), credentials_, &keys_,
        [this](std::unique_ptr<Link> link, const PeerHello& hello) { welcome(std::move(link), hello); });
  } catch (...) {
    heads_.close();
    server_.join();
    throw;
  }
  if (!config_.join.empty()) caller_ = std::thread([this] { call_head(); });
}

Worker::~Worker() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    if (control_ != nullptr) control_->close();
  }
  changed_.notify_all();
  if (caller_.joinable()) caller_.join();
  reception_.reset();
  heads_.close();
  server_.join();
}

void Worker::welcome(std::unique_ptr<Link> link, const PeerHello& hello) {
  if (hello.purpose == "control") {
    if (!config_.join.empty()) return refuse(*link, cat("this worker joins head ", config_.join, " and no other"));
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, kOldHeadLeaves, [this] { return !is_taken_ || stop_; });
    if (stop_) return;
    if (!std::exchange(is_taken_, true)) return heads_.push(std::move(link));
    lock.unlock();
    return refuse(*link, "this worker serves another head");
  }
  std::shared_ptr<WorkerSession> session;
  {
    const std::lock_guard lock(mutex_);
    session = session_;
  }
  if (session) session->take_link(hello.purpose, std::move(link));
}

void Worker::serve_heads() {
  while (const auto link = heads_.pop()) {
    if (config_.join.empty()) log_info("head {} has come", (*link)->peer());
    serve(**link);
    if (config_.join.empty()) log_info("head {} has gone", (*link)->peer());
  }
}

void Worker::serve(Link& control) {
  const auto session = std::make_shared<WorkerSession>(machine_, config_, *network_, keys_, [&] { control.close(); });
  {
    const std::lock_guard lock(mutex_);
    session_ = session;
    control_ = &control;
    if (stop_) control.close();
  }
  serve_control(control, [&](const std::string& what, const nlohmann::json& fields, const TaskProgress& progress) {
    return session->answer(what, fields, progress);
  });
  session->end();
  {
    const std::lock_guard lock(mutex_);
    farewell_ = session->farewell();
    session_.reset();
    control_ = nullptr;
    is_taken_ = false;
  }
  changed_.notify_all();
}

Result<std::monostate> Worker::call_once() {
  Result<std::unique_ptr<Link>> link = network_->connect(config_.join, after(kDialSeconds));
  if (!link) return link.error();
  const Result<PeerHello> head =
      open_handshake(*link.value(), credentials_, join_purpose(config_.name), after(kHandshakeSeconds));
  if (!head) return head.error();
  if (head.value().role != "head") {
    return Error(ErrorCode::kInvalidArgument,
                 "no head but another worker; --join takes what the head has for "
                 "--join-listen");
  }
  std::unique_lock lock(mutex_);
  if (stop_) return std::monostate{};
  is_taken_ = true;
  farewell_.clear();
  heads_.push(std::move(link).value());
  changed_.wait(lock, [this] { return !is_taken_ || stop_; });
  if (!farewell_.empty()) return Error(ErrorCode::kUnavailable, cat("does not take this worker: ", farewell_));
  return std::monostate{};
}

void Worker::call_head() {
  std::string told;
  double pause = kFirstPauseSeconds;
  while (true) {
    const Result<std::monostate> called = call_once();
    const std::string line = called ? "has gone" : called.error().message();
    pause = called ? kFirstPauseSeconds : std::min(2 * pause, kLongestPauseSeconds);
    std::unique_lock lock(mutex_);
    if (stop_) return;
    if (line != told) log_info("head {}: {}; it is called again", config_.join, line);
    told = line;
    changed_.wait_until(lock, after(pause), [this] { return stop_; });
    if (stop_) return;
  }
}

}  // namespace headrace::cluster
