#include "cluster/tls_stream.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>
#include <sys/socket.h>

#include <cerrno>

#include "cluster/tcp_socket.h"

namespace headrace::cluster {
namespace {

// OpenSSL's own socket BIO writes by write(), which raises SIGPIPE, and cannot say that more follows.

TlsStream::Socket& socket_of(BIO* bio) { return *static_cast<TlsStream::Socket*>(::BIO_get_data(bio)); }

bool would_block(int error) { return error == EAGAIN || error == EWOULDBLOCK || error == EINTR; }

int write_bio(BIO* bio, const char* bytes, int size) {
  TlsStream::Socket& socket = socket_of(bio);
  BIO_clear_retry_flags(bio);
  const int flags = MSG_NOSIGNAL | (socket.more_follows ? MSG_MORE : 0);
  const ssize_t n = ::send(socket.fd, bytes, static_cast<size_t>(size), flags);
  if (n >= 0) return static_cast<int>(n);
  socket.error_number = errno;
  if (would_block(errno)) BIO_set_retry_write(bio);
  return -1;
}

int read_bio(BIO* bio, char* bytes, int size) {
  TlsStream::Socket& socket = socket_of(bio);
  BIO_clear_retry_flags(bio);
  const ssize_t n = ::recv(socket.fd, bytes, static_cast<size_t>(size), 0);
  if (n > 0) return static_cast<int>(n);
  socket.ended = n == 0;
  socket.error_number = n == 0 ? 0 : errno;
  if (n < 0 && would_block(errno)) BIO_set_retry_read(bio);
  return n == 0 ? 0 : -1;
}

long control_bio(BIO* bio, int command, long, void*) {
  if (command == BIO_CTRL_EOF) return socket_of(bio).ended ? 1 : 0;
  return command == BIO_CTRL_FLUSH ? 1 : 0;  // nothing is held back
}

const BIO_METHOD* socket_method() {
  struct Free {
    void operator()(BIO_METHOD* method) const noexcept { ::BIO_meth_free(method); }
  };
  static const std::unique_ptr<BIO_METHOD, Free> method([] {
    BIO_METHOD* const made = ::BIO_meth_new(::BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "socket");
    if (made == nullptr) throw Error(ErrorCode::kOutOfMemory, "no memory for TLS");
    ::BIO_meth_set_write(made, write_bio);
    ::BIO_meth_set_read(made, read_bio);
    ::BIO_meth_set_ctrl(made, control_bio);
    return made;
  }());
  return method.get();
}

}  // namespace

void TlsStream::Free::operator()(ssl_st* ssl) const noexcept { ::SSL_free(ssl); }

TlsStream::TlsStream(ssl_ctx_st* context, TlsContext::Side side, int fd) : ssl_(::SSL_new(context)) {
  socket_.fd = fd;
  BIO* const bio = ssl_ ? ::BIO_new(socket_method()) : nullptr;
  if (bio == nullptr) throw Error(ErrorCode::kOutOfMemory, "no memory for TLS");
  ::BIO_set_data(bio, &socket_);
  ::BIO_set_init(bio, 1);
  ::SSL_set_bio(ssl_.get(), bio, bio);  // owns it
  if (side == TlsContext::Side::kConnects) {
    ::SSL_set_connect_state(ssl_.get());
  } else {
    ::SSL_set_accept_state(ssl_.get());
  }
}

TlsStream::~TlsStream() = default;

Progress TlsStream::progress_of(int returned) {
  switch (::SSL_get_error(ssl_.get(), returned)) {
    case SSL_ERROR_WANT_READ:
      return {Progress::Kind::kWaitReadable};
    case SSL_ERROR_WANT_WRITE:
      return {Progress::Kind::kWaitWritable};
    case SSL_ERROR_ZERO_RETURN:
      return {Progress::Kind::kEnded};
    case SSL_ERROR_SYSCALL:
      if (socket_.ended) return {Progress::Kind::kEnded};
      return {Progress::Kind::kFailed, 0, system_error_text(socket_.error_number)};
    default:
      break;
  }
  const char* const reason = ::ERR_reason_error_string(::ERR_peek_last_error());
  std::string why = cat("TLS: ", reason != nullptr ? reason : "failed");
  if (const long verdict = ::SSL_get_verify_result(ssl_.get()); verdict != X509_V_OK)
    why += cat(": ", ::X509_verify_cert_error_string(verdict));
  return {Progress::Kind::kFailed, 0, std::move(why)};
}

Progress TlsStream::shake_hands() {
  const std::lock_guard lock(mutex_);
  ::ERR_clear_error();
  const int returned = ::SSL_do_handshake(ssl_.get());
  return returned == 1 ? Progress{Progress::Kind::kMoved} : progress_of(returned);
}

Progress TlsStream::write_some(std::span<const iovec> parts) {
  const std::lock_guard lock(mutex_);
  ::ERR_clear_error();
  size_t written = 0;
  socket_.more_follows = parts.size() > 1;
  const int returned = ::SSL_write_ex(ssl_.get(), parts.front().iov_base, parts.front().iov_len, &written);
  socket_.more_follows = false;
  return returned == 1 ? Progress{Progress::Kind::kMoved, written} : progress_of(returned);
}

Progress TlsStream::read_some(std::span<std::byte> into) {
  const std::lock_guard lock(mutex_);
  ::ERR_clear_error();
  size_t read = 0;
  const int returned = ::SSL_read_ex(ssl_.get(), into.data(), into.size(), &read);
  return returned == 1 ? Progress{Progress::Kind::kMoved, read} : progress_of(returned);
}

}  // namespace headrace::cluster
