#include "cluster/worker.h"

#include <nlohmann/json.hpp>

#include "base/log.h"
#include "cluster/credentials.h"
#include "cluster/message.h"
#include "cluster/time_limits.h"
#include "engine/tuning_file.h"

namespace headrace::cluster {
namespace {

/// A head that connects again may be here before its last connection is known to be gone.
constexpr std::chrono::seconds kOldHeadLeaves{5};

CpuTuning tuning_of(const WorkerConfig& config) {
  const auto path = tuning_path(config.isa, config.threads);
  return path ? load_tuning(*path) : CpuTuning{};
}

/// Answers its first question with a refusal.
void refuse(Link& link) {
  uint64_t id = 0;
  std::vector<std::byte> payload;
  if (!receive_message(link, id, payload, after(kHandshakeSeconds))) return;
  const Error error(ErrorCode::kUnavailable, "this worker serves another head");
  (void)send_message(link, id, error_message(error), after(kHandshakeSeconds));
}

}  // namespace

Worker::Worker(WorkerConfig config)
    : config_(std::move(config)),
      network_(make_tcp_network(config_.tls)),
      machine_(config_.isa, config_.threads, tuning_of(config_)),
      server_([this] { serve_heads(); }) {
  try {
    reception_ = std::make_unique<Reception>(
        listen_tcp(config_.listen, config_.tls), credentials_of("worker", config_.secret_file), &keys_,
        [this](std::unique_ptr<Link> link, const PeerHello& hello) { welcome(std::move(link), hello); });
  } catch (...) {
    heads_.close();
    server_.join();
    throw;
  }
}

Worker::~Worker() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    if (control_ != nullptr) control_->close();
  }
  changed_.notify_all();
  reception_.reset();
  heads_.close();
  server_.join();
}

void Worker::welcome(std::unique_ptr<Link> link, const PeerHello& hello) {
  if (hello.purpose == "control") {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, kOldHeadLeaves, [this] { return !is_taken_ || stop_; });
    if (stop_) return;
    if (!std::exchange(is_taken_, true)) return heads_.push(std::move(link));
    lock.unlock();
    return refuse(*link);
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
    log_info("head {} has come", (*link)->peer());
    serve(**link);
    log_info("head {} has gone", (*link)->peer());
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
    session_.reset();
    control_ = nullptr;
    is_taken_ = false;
  }
  changed_.notify_all();
}

}  // namespace headrace::cluster
