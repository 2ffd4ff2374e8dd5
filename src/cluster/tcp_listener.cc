#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>

#include "base/byte_order.h"
#include "cluster/poll_until.h"
#include "cluster/tcp_link.h"

namespace headrace::cluster {
namespace {

/// Out of descriptors, a connection stays in the queue and poll returns at once; look again this much later.
constexpr double kNoDescriptorsSeconds = 0.1;

class TcpListener final : public Listener {
 public:
  explicit TcpListener(const std::string& address)
      : address_(address), fd_(bind_tcp(address)), wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (wake_.get() < 0) throw Error(ErrorCode::kUnavailable, cat(address, ": ", system_error_text(errno)));
  }

  [[nodiscard]] Result<std::unique_ptr<Link>> accept(Deadline deadline) override {
    bool has_descriptors = true;
    while (!closed_.load()) {
      std::array<pollfd, 2> descriptors{pollfd{wake_.get(), POLLIN, 0}, pollfd{fd_.get(), POLLIN, 0}};
      const Deadline until = has_descriptors ? deadline : std::min(deadline, after(kNoDescriptorsSeconds));
      const bool ready = poll_until(std::span(descriptors).first(has_descriptors ? 2 : 1), until);
      if (!ready && until == deadline) return Error(ErrorCode::kTimeout, cat(address_, ": no connection in time"));
      has_descriptors = true;
      if (descriptors[1].revents == 0) continue;
      Descriptor fd(::accept4(fd_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
      if (fd.get() >= 0) return link_over(std::move(fd));
      has_descriptors = errno != EMFILE && errno != ENFILE && errno != ENOBUFS && errno != ENOMEM;
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
  static std::unique_ptr<Link> link_over(Descriptor fd) {
    tune_socket(fd.get());
    auto stream = std::make_unique<PlainStream>(fd.get());
    std::string peer = peer_address(fd.get());
    return std::make_unique<TcpLink>(std::move(fd), std::move(stream), std::move(peer));
  }

  std::string address_;
  Descriptor fd_;
  Descriptor wake_;  ///< readable once closed
  std::atomic<bool> closed_{false};
};

}  // namespace

std::unique_ptr<Listener> listen_tcp(const std::string& address, const TlsFiles& tls) {
  if (tls.any()) throw Error(ErrorCode::kUnsupported, "TLS between machines is not supported yet");
  return std::make_unique<TcpListener>(address);
}

}  // namespace headrace::cluster
