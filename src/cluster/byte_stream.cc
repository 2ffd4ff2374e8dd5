#include "cluster/byte_stream.h"

#include <sys/socket.h>

#include <cerrno>

#include "cluster/tcp_socket.h"

namespace headrace::cluster {
namespace {

bool would_block(int error) { return error == EAGAIN || error == EWOULDBLOCK || error == EINTR; }

}  // namespace

Progress PlainStream::write_some(std::span<const iovec> parts) {
  msghdr message{};
  message.msg_iov = const_cast<iovec*>(parts.data());  // sendmsg only reads it
  message.msg_iovlen = parts.size();
  const ssize_t n = ::sendmsg(fd_, &message, MSG_NOSIGNAL);
  if (n >= 0) return {Progress::Kind::kMoved, static_cast<size_t>(n)};
  if (would_block(errno)) return {Progress::Kind::kWaitWritable};
  return {Progress::Kind::kFailed, 0, system_error_text(errno)};
}

Progress PlainStream::read_some(std::span<std::byte> into) {
  const ssize_t n = ::recv(fd_, into.data(), into.size(), 0);
  if (n > 0) return {Progress::Kind::kMoved, static_cast<size_t>(n)};
  if (n == 0) return {Progress::Kind::kEnded};
  if (would_block(errno)) return {Progress::Kind::kWaitReadable};
  return {Progress::Kind::kFailed, 0, system_error_text(errno)};
}

}  // namespace headrace::cluster
