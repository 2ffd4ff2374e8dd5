#include "cluster/tcp_socket.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <memory>
#include <system_error>

#include "cluster/poll_until.h"

namespace headrace::cluster {
namespace {

/// A connection whose data nobody acknowledges is at an end after this; the heartbeat tells earlier, the kernel also
/// tells where nobody listens to it. Long enough for a peer that writes gigabytes to a slow disk.
constexpr int kUserTimeoutMs = 30'000;
constexpr int kKeepIdleSeconds = 10;
constexpr int kKeepIntervalSeconds = 5;
constexpr int kKeepProbes = 3;
constexpr int kBacklog = 128;

using AddressList = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

Error at_address(ErrorCode code, const std::string& address, const std::string& what) {
  return Error(code, cat(address, ": ", what));
}

Result<AddressList> resolve(const std::string& text, int flags) {
  const Result<Address> address = parse_address(text);
  if (!address) return address.error();
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* list = nullptr;
  const int error = ::getaddrinfo(address.value().host.c_str(), address.value().port.c_str(), &hints, &list);
  if (error == 0) return AddressList(list, &::freeaddrinfo);
  return at_address(ErrorCode::kUnavailable, text,
                    error == EAI_SYSTEM ? system_error_text(errno) : ::gai_strerror(error));
}

void set_option(int fd, int level, int name, int value) noexcept {
  (void)::setsockopt(fd, level, name, &value, sizeof(value));  // one that the system lacks is no reason to fail
}

Descriptor open_socket(const addrinfo& address) noexcept {
  return Descriptor(::socket(address.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}

/// 0, or the system's error.
int connect_until(int fd, const addrinfo& address, Deadline deadline) noexcept {
  if (::connect(fd, address.ai_addr, address.ai_addrlen) == 0) return 0;
  if (errno != EINPROGRESS && errno != EINTR) return errno;
  if (!wait_for(fd, Wait::kWritable, deadline)) return ETIMEDOUT;
  int error = 0;
  socklen_t size = sizeof(error);
  return ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0 ? error : errno;
}

/// "10.0.0.2", "[::1]"
std::string host_text(const sockaddr_storage& address) {
  std::array<char, INET6_ADDRSTRLEN> host{};
  if (address.ss_family == AF_INET6) {
    ::inet_ntop(AF_INET6, &reinterpret_cast<const sockaddr_in6&>(address).sin6_addr, host.data(), host.size());
    return cat('[', host.data(), ']');
  }
  ::inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in&>(address).sin_addr, host.data(), host.size());
  return host.data();
}

std::string_view listen_remedy(int error) noexcept {
  switch (error) {
    case EADDRINUSE:
      return "; end what listens there, or take another port";
    case EADDRNOTAVAIL:
      return "; take an address of this machine, or 0.0.0.0 for all that it has";
    case EINVAL:  // as of one without the interface
      return "; an IPv6 address of one link is written with its interface: [fe80::1%eth0]:8100";
    case EACCES:
      return "; take a port from 1024 on";
    default:
      return "";
  }
}

uint16_t port_of(const sockaddr_storage& address) noexcept {
  return address.ss_family == AF_INET6 ? ntohs(reinterpret_cast<const sockaddr_in6&>(address).sin6_port)
                                       : ntohs(reinterpret_cast<const sockaddr_in&>(address).sin_port);
}

}  // namespace

Descriptor::~Descriptor() {
  if (fd_ >= 0) ::close(fd_);
}

std::string system_error_text(int error_number) { return std::generic_category().message(error_number); }

Result<Address> parse_address(const std::string& text) {
  const Error error = at_address(ErrorCode::kInvalidArgument, printable(text), "expected HOST:PORT or [IPV6]:PORT");
  const size_t colon = text.rfind(':');
  if (colon == text.npos) return error;
  std::string host = text.substr(0, colon);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  } else if (host.find_first_of(":[]") != host.npos) {
    return error;
  }
  const std::string port = text.substr(colon + 1);
  uint16_t number = 0;
  const auto [end, fault] = std::from_chars(port.data(), port.data() + port.size(), number);
  if (host.empty() || fault != std::errc() || end != port.data() + port.size()) return error;
  if (host.find('\0') != host.npos) return error;
  return Address{std::move(host), port};
}

Result<Descriptor> connect_tcp(const std::string& address, Deadline deadline) {
  Result<AddressList> list = resolve(address, 0);
  if (!list) return list.error();
  int num_left = 0;
  for (const addrinfo* one = list.value().get(); one != nullptr; one = one->ai_next) ++num_left;
  int error = 0;
  for (const addrinfo* one = list.value().get(); one != nullptr; one = one->ai_next, --num_left) {
    // An address that does not answer leaves time for those after it.
    const auto now = std::chrono::steady_clock::now();
    const Deadline share = deadline <= now ? deadline : now + (deadline - now) / num_left;
    Descriptor fd = open_socket(*one);
    if (fd.get() < 0) {
      error = errno;
      continue;
    }
    tune_socket(fd.get());
    error = connect_until(fd.get(), *one, share);
    if (error == 0) return fd;
  }
  if (error == ETIMEDOUT) return at_address(ErrorCode::kTimeout, address, "did not answer in time");
  return at_address(ErrorCode::kUnavailable, address, system_error_text(error));
}

Descriptor bind_tcp(const std::string& address, std::string_view flag) {
  const std::string shown_as = flag.empty() ? "" : cat(flag, ": ");
  Result<AddressList> list = resolve(address, AI_PASSIVE);
  if (!list)
    throw Error(ErrorCode::kInvalidArgument, cat(shown_as, list.error().message(), listen_remedy(EADDRNOTAVAIL)));
  int error = 0;
  for (const addrinfo* one = list.value().get(); one != nullptr; one = one->ai_next) {
    Descriptor fd = open_socket(*one);
    if (fd.get() >= 0) {
      set_option(fd.get(), SOL_SOCKET, SO_REUSEADDR, 1);
      if (one->ai_family == AF_INET6) set_option(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, 0);
      if (::bind(fd.get(), one->ai_addr, one->ai_addrlen) == 0 && ::listen(fd.get(), kBacklog) == 0) return fd;
    }
    error = errno;
  }
  throw at_address(error == EADDRNOTAVAIL ? ErrorCode::kInvalidArgument : ErrorCode::kUnavailable, shown_as + address,
                   cat("cannot listen: ", system_error_text(error), listen_remedy(error)));
}

uint16_t local_port(int fd) noexcept {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) return 0;
  return port_of(address);
}

std::string peer_address(int fd) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  if (::getpeername(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) return "a peer that is gone";
  return cat(host_text(address), ':', port_of(address));
}

Result<std::string> local_host_towards(const std::string& address) {
  Result<AddressList> list = resolve(address, 0);
  if (!list) return list.error();
  int error = 0;
  for (const addrinfo* one = list.value().get(); one != nullptr; one = one->ai_next) {
    const Descriptor fd(::socket(one->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    sockaddr_storage mine{};
    socklen_t size = sizeof(mine);
    // Connecting a datagram socket only looks up the route.
    if (fd.get() >= 0 && ::connect(fd.get(), one->ai_addr, one->ai_addrlen) == 0 &&
        ::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&mine), &size) == 0) {
      return host_text(mine);
    }
    error = errno;
  }
  return at_address(ErrorCode::kUnavailable, address, system_error_text(error));
}

bool is_any_address(const std::string& address) {
  const Result<Address> parts = parse_address(address);
  if (!parts) return false;
  if (parts.value().host == "*") return true;
  // There are many ways to write it: 0, 0.0, ::0.
  const Result<AddressList> list = resolve(address, AI_NUMERICHOST);
  if (!list) return false;
  sockaddr_storage first{};
  std::memcpy(&first, list.value()->ai_addr, list.value()->ai_addrlen);
  const std::string host = host_text(first);
  return host == "0.0.0.0" || host == "[::]";
}

void tune_socket(int fd) noexcept {
  set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, kKeepIdleSeconds);
  set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, kKeepIntervalSeconds);
  set_option(fd, IPPROTO_TCP, TCP_KEEPCNT, kKeepProbes);
  set_option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, kUserTimeoutMs);
}

bool wait_for(int fd, Wait what, Deadline deadline) noexcept {
  pollfd one{fd, static_cast<short>(what == Wait::kReadable ? POLLIN : POLLOUT), 0};
  return poll_until({&one, 1}, deadline);
}

}  // namespace headrace::cluster
