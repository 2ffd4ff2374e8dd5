#pragma once

#include <string>
#include <utility>

#include "cluster/link.h"

namespace headrace::cluster {

/// A file descriptor that is closed with its owner.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) noexcept : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor();
  [[nodiscard]] int get() const noexcept { return fd_; }

 private:
  int fd_ = -1;
};

/// "host:port" or "[::1]:port", taken apart.
struct Address {
  std::string host, port;
};
/// kInvalidArgument for anything else.
[[nodiscard]] Result<Address> parse_address(const std::string& text);

/// The system's word for `error_number`.
[[nodiscard]] std::string system_error_text(int error_number);

/// A connected socket that does not block. Tries what the name stands for, one after the other. The system's resolver
/// has time limits of its own: with a name that it has to ask for, the deadline may pass by as much.
[[nodiscard]] Result<Descriptor> connect_tcp(const std::string& address, Deadline deadline);
/// A listening socket that does not block. Throws Error as listen_tcp.
[[nodiscard]] Descriptor bind_tcp(const std::string& address, std::string_view flag = {});
[[nodiscard]] uint16_t local_port(int fd) noexcept;
[[nodiscard]] std::string peer_address(int fd);
/// This machine's address, without a port, on the way to another; nothing is sent.
[[nodiscard]] Result<std::string> local_host_towards(const std::string& address);
/// Whether "host:port" names no machine but all of this one's addresses.
[[nodiscard]] bool is_any_address(const std::string& address);
/// No delay, keep-alive, and an end for peers that acknowledge nothing. Buffers stay with the system's tuning.
void tune_socket(int fd) noexcept;

/// What poll waits for.
enum class Wait { kReadable, kWritable };
/// Sleeps until the socket is ready, at an end, or `deadline` (false) has come.
[[nodiscard]] bool wait_for(int fd, Wait what, Deadline deadline) noexcept;

}  // namespace headrace::cluster
