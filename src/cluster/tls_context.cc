#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/stat.h>

#include <cerrno>

#include "cluster/tcp_socket.h"
#include "cluster/tls_stream.h"

namespace headrace::cluster {
namespace {

/// What OpenSSL reads from the socket at once: several records.
constexpr size_t kReadBufferBytes = 128 << 10;

[[noreturn]] void refuse(const std::string& file, const char* what) {
  const unsigned long code = ::ERR_peek_last_error();
  const char* const reason = code != 0 ? ::ERR_reason_error_string(code) : nullptr;
  ::ERR_clear_error();
  throw LoadError(file, cat("not ", what, reason != nullptr ? ": " : "", reason != nullptr ? reason : ""),
                  ErrorCode::kInvalidArgument);
}

/// OpenSSL has no clear word for a file that cannot be read, and waits for one that is a pipe.
void require_file(const std::string& path, std::string_view flag) {
  const Descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat status {};
  if (fd.get() < 0 || ::fstat(fd.get(), &status) != 0)
    throw LoadError(path, cat(flag, " cannot be read: ", system_error_text(errno)), ErrorCode::kInvalidArgument);
  if (!S_ISREG(status.st_mode)) throw LoadError(path, cat(flag, " is no file"), ErrorCode::kInvalidArgument);
}

/// In place of OpenSSL's own, which would ask at the terminal.
int no_passphrase(char*, int, int, void*) { return 0; }

}  // namespace

void TlsContext::Free::operator()(ssl_ctx_st* context) const noexcept { ::SSL_CTX_free(context); }

TlsContext::TlsContext(const TlsFiles& files, Side side)
    : side_(side), context_(::SSL_CTX_new(side == Side::kConnects ? ::TLS_client_method() : ::TLS_server_method())) {
  if (files.certificate.empty() || files.key.empty() || files.authority.empty()) {
    throw Error(ErrorCode::kInvalidArgument,
                "TLS between machines takes three files: this machine's certificate (--cluster-certfile), its key "
                "(--cluster-keyfile), and the authority that signed the certificates of all machines "
                "(--cluster-cafile)");
  }
  require_file(files.certificate, "--cluster-certfile");
  require_file(files.key, "--cluster-keyfile");
  require_file(files.authority, "--cluster-cafile");
  ::ERR_clear_error();
  SSL_CTX* const context = context_.get();
  if (context == nullptr || ::SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) != 1)
    throw Error(ErrorCode::kInternal, "OpenSSL has no TLS 1.3");
  ::SSL_CTX_set_default_passwd_cb(context, no_passphrase);
  if (::SSL_CTX_use_certificate_chain_file(context, files.certificate.c_str()) != 1)
    refuse(files.certificate, "a certificate in PEM");
  if (::SSL_CTX_use_PrivateKey_file(context, files.key.c_str(), SSL_FILETYPE_PEM) != 1)
    refuse(files.key, "the private key, in PEM and without a passphrase, of the certificate");
  if (::SSL_CTX_load_verify_locations(context, files.authority.c_str(), nullptr) != 1)
    refuse(files.authority, "an authority's certificate in PEM");
  ::SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  // Links live long: nothing to resume. A connection that ends between frames is no attack, inside one it is an error.
  ::SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  ::SSL_CTX_set_num_tickets(context, 0);
  ::SSL_CTX_set_options(context, SSL_OP_IGNORE_UNEXPECTED_EOF);
  ::SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  ::SSL_CTX_set_read_ahead(context, 1);
  ::SSL_CTX_set_default_read_buffer_len(context, kReadBufferBytes);
}

std::unique_ptr<TlsStream> TlsContext::stream(int fd) const {
  return std::make_unique<TlsStream>(context_.get(), side_, fd);
}

}  // namespace headrace::cluster
