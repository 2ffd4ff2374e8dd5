#include "cluster/rank_links.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>

#include "cluster/shared_stream.h"

namespace headrace::cluster {
namespace {

constexpr double kConnectSeconds = 10;

struct SocketPair {
  Descriptor from, to;
};

Error no_sockets() {
  return Error(ErrorCode::kUnavailable, cat("no sockets between ranks: ", system_error_text(errno)));
}

/// To ring with: only that bytes come, and the end, matter.
SocketPair make_bells() {
  std::array<int, 2> pair{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair.data()) != 0) throw no_sockets();
  return {Descriptor(pair[0]), Descriptor(pair[1])};
}

/// A connection over the loopback interface. Others on this machine may connect meanwhile: they are let go.
SocketPair connect_loopback() {
  const Deadline deadline = after(kConnectSeconds);
  const Descriptor listening = bind_tcp("127.0.0.1:0");
  Result<Descriptor> from = connect_tcp(cat("127.0.0.1:", local_port(listening.get())), deadline);
  if (!from) throw from.error();
  const std::string expected = cat("127.0.0.1:", local_port(from.value().get()));
  while (wait_for(listening.get(), Wait::kReadable, deadline)) {
    Descriptor to(::accept4(listening.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (to.get() < 0 || peer_address(to.get()) != expected) continue;
    tune_socket(to.get());
    return {std::move(from).value(), std::move(to)};
  }
  throw Error(ErrorCode::kTimeout, cat("ranks were not connected over 127.0.0.1 within ", kConnectSeconds, " s"));
}

RankEnd open_end(Descriptor socket, const Descriptor& memory) {
  RankEnd end{.socket = std::move(socket), .stream = nullptr};
  if (memory.get() >= 0) {
    end.stream = std::make_unique<SharedStream>(memory.get(), end.socket.get());
  } else {
    end.stream = std::make_unique<PlainStream>(end.socket.get());
  }
  return end;
}

}  // namespace

std::optional<RankTransport> parse_rank_transport(std::string_view name) noexcept {
  if (name == "shm") return RankTransport::kSharedMemory;
  if (name == "tcp") return RankTransport::kTcp;
  return std::nullopt;
}

std::vector<RankDescriptors> make_rank_links(int32_t ranks, RankTransport transport) {
  std::vector<RankDescriptors> all(static_cast<size_t>(ranks));
  for (size_t rank = 0; rank < all.size(); ++rank) {
    RankDescriptors& next = all[(rank + 1) % all.size()];
    SocketPair sockets = transport == RankTransport::kTcp ? connect_loopback() : make_bells();
    all[rank].to_next = std::move(sockets.from);
    next.from_previous = std::move(sockets.to);
    if (transport == RankTransport::kTcp) continue;
    all[rank].next_memory = SharedStream::make_memory();
    next.previous_memory = Descriptor(::fcntl(all[rank].next_memory.get(), F_DUPFD_CLOEXEC, 0));
    if (next.previous_memory.get() < 0) throw no_sockets();
  }
  return all;
}

RankRing open_rank_ring(RankPlace place, RankDescriptors descriptors, double limit_seconds) {
  RankEnd to_next = open_end(std::move(descriptors.to_next), descriptors.next_memory);
  RankEnd from_previous = open_end(std::move(descriptors.from_previous), descriptors.previous_memory);
  return {place, std::move(to_next), std::move(from_previous), limit_seconds};
}

}  // namespace headrace::cluster
