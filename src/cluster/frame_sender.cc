#include "cluster/frame_sender.h"

#include <array>

#include "cluster/time_limits.h"

namespace headrace::cluster {

FrameSender::FrameSender(Link& link, std::function<void(const Error&)> failed)
    : link_(link), failed_(std::move(failed)), thread_([this] { run(); }) {}

FrameSender::~FrameSender() {
  close();
  thread_.join();
}

void FrameSender::run() noexcept {
  while (const std::optional<OutFrame> frame = frames_.pop()) {
    const std::span<const std::byte> shared =
        frame->shared ? std::span<const std::byte>(*frame->shared) : std::span<const std::byte>{};
    const std::array parts{std::span<const std::byte>(frame->bytes), shared, std::as_bytes(std::span(frame->data))};
    const auto begin = std::chrono::steady_clock::now();
    const auto sent = link_.send(frame->header, parts, after(kStallSeconds));
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
    seconds_.fetch_add(taken.count(), std::memory_order_relaxed);
    if (sent) continue;
    close();
    failed_(sent.error());
  }
}

}  // namespace headrace::cluster
