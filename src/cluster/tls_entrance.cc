#include "cluster/tls_entrance.h"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/log.h"
#include "cluster/newcomer_place.h"

namespace headrace::cluster {

void TlsEntrance::add(Descriptor fd, std::string peer) {
  if (pending_.size() >= kMaxPending) {
    std::vector<std::string_view> peers;
    for (const Pending& pending : pending_) peers.push_back(pending.peer);
    pending_.erase(pending_.begin() + static_cast<ptrdiff_t>(place_for_newcomer(peers)));
  }
  auto stream = context_.stream(fd.get());
  pending_.push_back({.fd = std::move(fd),
                      .stream = std::move(stream),
                      .peer = std::move(peer),
                      .deadline = after(kSeconds),
                      .events = POLLIN,
                      .refused = false});
}

void TlsEntrance::append_to(std::vector<pollfd>& descriptors) const {
  for (const Pending& pending : pending_) descriptors.push_back({pending.fd.get(), pending.events, 0});
}

Deadline TlsEntrance::next_deadline() const noexcept {
  Deadline next = Deadline::max();
  for (const Pending& pending : pending_) next = std::min(next, pending.deadline);
  return next;
}

TlsEntrance::Next TlsEntrance::advance(Pending& pending) {
  if (pending.refused) {
    // Closed with bytes of the peer unread, the connection would be reset, and the peer not learn why.
    std::array<std::byte, 4096> unread;
    const ssize_t n = ::recv(pending.fd.get(), unread.data(), unread.size(), MSG_DONTWAIT);
    return n > 0 || (n < 0 && errno == EAGAIN) ? Next::kGoesOn : Next::kGone;
  }
  const Progress progress = pending.stream->shake_hands();
  switch (progress.kind) {
    case Progress::Kind::kMoved:
      return Next::kDone;
    case Progress::Kind::kWaitReadable:
      pending.events = POLLIN;
      return Next::kGoesOn;
    case Progress::Kind::kWaitWritable:
      pending.events = POLLOUT;
      return Next::kGoesOn;
    case Progress::Kind::kEnded:
      return Next::kGone;
    case Progress::Kind::kFailed:
      break;
  }
  log_info("{}: not let in: {}", pending.peer, progress.why);
  ::shutdown(pending.fd.get(), SHUT_WR);
  pending.events = POLLIN;
  pending.refused = true;
  return Next::kGoesOn;
}

std::unique_ptr<Link> TlsEntrance::step(std::span<const pollfd> polled) {
  const Deadline now = std::chrono::steady_clock::now();
  std::unique_ptr<Link> link;
  for (size_t i = pending_.size(); i-- > 0;) {  // from the end, so that what is erased moves none that comes
    Pending& pending = pending_[i];
    const bool late = now >= pending.deadline;
    const bool ready = i < polled.size() && polled[i].revents != 0 && !link;
    const Next next = ready ? advance(pending) : Next::kGoesOn;
    if (next == Next::kDone)
      link = std::make_unique<TcpLink>(std::move(pending.fd), std::move(pending.stream), std::move(pending.peer));
    if (next != Next::kGoesOn || late) pending_.erase(pending_.begin() + static_cast<ptrdiff_t>(i));
  }
  return link;
}

}  // namespace headrace::cluster
