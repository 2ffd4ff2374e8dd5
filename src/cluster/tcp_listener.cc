#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <optional>

#include "base/byte_order.h"
#include "cluster/poll_until.h"
#include "cluster/tcp_link.h"
#include "cluster/tls_entrance.h"

namespace headrace::cluster {
namespace {

/// Out of descriptors, a connection stays in the queue and poll returns at once; look again this much later.
constexpr double kNoDescriptorsSeconds = 0.1;

class TcpListener final : public Listener {
 public:
  TcpListener(const std::string& address, const TlsFiles& tls, std::string_view flag)
      : address_(address), fd_(bind_tcp(address, flag)), wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (wake_.get() < 0) throw Error(ErrorCode::kUnavailable, cat(address, ": ", system_error_text(errno)));
    if (tls.any()) tls_.emplace(tls);
  }

  [[nodiscard]] Result<std::unique_ptr<Link>> accept(Deadline deadline) override {
    while (!closed_.load()) {
      // In this order: what wakes, then the connections in their handshake, then (where one can be taken) the listener.
      descriptors_.assign(1, {wake_.get(), POLLIN, 0});
      if (tls_) tls_->append_to(descriptors_);
      const size_t num_pending = descriptors_.size() - 1;
      const bool takes = has_descriptors_;
      if (takes) descriptors_.push_back({fd_.get(), POLLIN, 0});
      Deadline until = has_descriptors_ ? deadline : std::min(deadline, after(kNoDescriptorsSeconds));
      if (tls_) until = std::min(until, tls_->next_deadline());
      const bool ready = poll_until(descriptors_, until);
      has_descriptors_ = true;
      if (tls_) {
        auto link = tls_->step(std::span(descriptors_).subspan(1, num_pending));
        if (link) return link;
      }
      if (ready && takes && descriptors_.back().revents != 0) {
        auto link = take();
        if (link) return link;
      }
      if (!ready && std::chrono::steady_clock::now() >= deadline)
        return Error(ErrorCode::kTimeout, cat(address_, ": no connection in time"));
    }
    return Error(ErrorCode::kUnavailable, cat(address_, ": closed"));
  }

  void close() noexcept override {
    closed_.store(true);
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t n = ::write(wake_.get(), &one, sizeof(one));
  }

  [[nodiscard]] uint16_t port() const noexcept override { return local_port(fd_.get()); }

 private:
  /// The next connection from the system's queue; null where it is gone again, or has its TLS handshake before it.
  std::unique_ptr<Link> take() {
    Descriptor fd(::accept4(fd_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (fd.get() < 0) {
      has_descriptors_ = errno != EMFILE && errno != ENFILE && errno != ENOBUFS && errno != ENOMEM;
      return nullptr;
    }
    tune_socket(fd.get());
    std::string peer = peer_address(fd.get());
    if (tls_) {
      tls_->add(std::move(fd), std::move(peer));
      return nullptr;
    }
    auto stream = std::make_unique<PlainStream>(fd.get());
    return std::make_unique<TcpLink>(std::move(fd), std::move(stream), std::move(peer));
  }

  std::string address_;
  Descriptor fd_;
  Descriptor wake_;  ///< readable once closed
  std::atomic<bool> closed_{false};
  // Of the thread that accepts.
  std::optional<TlsEntrance> tls_;
  std::vector<pollfd> descriptors_;
  bool has_descriptors_ = true;  ///< the system had one to give when last asked
};

}  // namespace

std::unique_ptr<Listener> listen_tcp(const std::string& address, const TlsFiles& tls, std::string_view flag) {
  return std::make_unique<TcpListener>(address, tls, flag);
}

}  // namespace headrace::cluster
