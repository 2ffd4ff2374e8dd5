#include "server/http_server.h"

#include <pthread.h>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <exception>
#include <thread>
#include <utility>

#include "base/cat.h"
#include "base/error.h"
#include "base/log.h"
#include "server/http_connection.h"

namespace headrace::server {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

// Beyond max_connections, this many may wait for their 503; others are closed without a word.
constexpr int64_t kRefusedConnections = 64;
// After a failed accept: without file descriptors, the next attempt would fail at once as well.
constexpr std::chrono::milliseconds kAcceptPause{50};

// A thread and the connections that live on it: nothing of a connection needs a lock but its answer.
struct Loop {
  asio::io_context io{1};
  asio::executor_work_guard<asio::io_context::executor_type> work{io.get_executor()};
  ConnectionSet connections;
  std::thread thread;

  void run() {
    pthread_setname_np(pthread_self(), "hr-http");
    for (;;) {
      try {
        io.run();
        return;
      } catch (const std::exception& error) {
        log_warn("HTTP server: a job failed: {}", error.what());
      }
    }
  }
};

tcp::endpoint resolve(asio::io_context& io, const std::string& host, uint16_t port) {
  error_code ec;
  const auto address = asio::ip::make_address(host, ec);
  if (!ec) return {address, port};
  tcp::resolver resolver(io);
  const auto found = resolver.resolve(host, cat(port), tcp::resolver::passive | tcp::resolver::numeric_service, ec);
  if (ec || found.empty()) {
    throw Error(ErrorCode::kNotFound, cat("cannot listen on ", host, ":", port, ": no such host (", ec.message(), ")"));
  }
  return found.begin()->endpoint();
}

std::unique_ptr<asio::ssl::context> make_tls(const HttpOptions& options) {
  if (options.tls_certificate.empty() && options.tls_key.empty()) return nullptr;
  if (options.tls_certificate.empty() || options.tls_key.empty()) {
    throw Error(ErrorCode::kInvalidArgument, "TLS needs both a certificate and a key, found only one of the files");
  }
  auto tls = std::make_unique<asio::ssl::context>(asio::ssl::context::tls_server);
  SSL_CTX_set_min_proto_version(tls->native_handle(), TLS1_2_VERSION);
  tls->set_options(SSL_OP_NO_RENEGOTIATION);
  error_code ec;
  tls->use_certificate_chain_file(options.tls_certificate, ec);
  if (ec) {
    throw LoadError(options.tls_certificate, cat("cannot be used as a chain of certificates in PEM: ", ec.message()));
  }
  tls->use_private_key_file(options.tls_key, asio::ssl::context::pem, ec);
  if (!ec && SSL_CTX_check_private_key(tls->native_handle()) == 1) return tls;
  const std::string why = ec ? ec.message() : cat("it does not belong to ", options.tls_certificate);
  throw LoadError(options.tls_key, cat("cannot be used as the private key in PEM: ", why));
}

}  // namespace

class HttpServer::Impl {
 public:
  Impl(HttpOptions options, HttpHandler handler) {
    host_.tls = make_tls(options);
    host_.options = std::move(options);
    host_.handler = std::move(handler);
    for (int i = 0; i < std::max(1, host_.options.threads); ++i) loops_.push_back(std::make_unique<Loop>());
    acceptor_.emplace(loops_[0]->io);
    pause_.emplace(loops_[0]->io);
    listen();
    accept_next();
    for (const auto& loop : loops_) loop->thread = std::thread(&Loop::run, loop.get());
  }

  ~Impl() {
    join();
    // What a thread left to another that had ended already.
    for (bool more = true; more;) {
      more = false;
      for (const auto& loop : loops_) {
        loop->io.restart();
        more |= loop->io.poll() > 0;
      }
    }
  }

  void join() {
    stop();
    for (const auto& loop : loops_) loop->work.reset();
    for (const auto& loop : loops_) {
      if (loop->thread.joinable()) loop->thread.join();
    }
  }

  uint16_t port() const noexcept { return port_; }
  int64_t connections() const noexcept { return host_.connections; }
  int64_t open_requests() const noexcept { return host_.open_requests; }

  void post(std::function<void()> job) { asio::post(loops_[next_job_++ % loops_.size()]->io, std::move(job)); }

  void begin_drain() {
    host_.draining = true;
    each_connection(&Connection::close_if_idle);
  }

  void stop() {
    if (host_.stopping.exchange(true)) return;
    asio::post(loops_[0]->io, [this] {
      error_code ignored;
      acceptor_->close(ignored);
      pause_->cancel();
    });
    each_connection(&Connection::close);
  }

 private:
  void listen() {
    const tcp::endpoint endpoint = resolve(loops_[0]->io, host_.options.host, host_.options.port);
    error_code ec;
    acceptor_->open(endpoint.protocol(), ec);
    if (!ec) acceptor_->set_option(tcp::acceptor::reuse_address(true), ec);
    if (!ec) acceptor_->bind(endpoint, ec);
    if (!ec) acceptor_->listen(asio::socket_base::max_listen_connections, ec);
    if (ec) {
      throw Error(ErrorCode::kUnavailable,
                  cat("cannot listen on ", host_.options.host, ":", host_.options.port, ": ", ec.message(),
                      ec == asio::error::address_in_use ? "; end what listens there, or take another --port" : ""));
    }
    port_ = acceptor_->local_endpoint().port();
  }

  void accept_next() {
    Loop& loop = *loops_[next_connection_++ % loops_.size()];
    acceptor_->async_accept(loop.io, [this, &loop](const error_code& ec, tcp::socket socket) {
      if (host_.stopping) return;
      if (ec) {
        pause_->expires_after(kAcceptPause);
        pause_->async_wait([this](const error_code& cancelled) {
          if (!cancelled && !host_.stopping) accept_next();
        });
        return;
      }
      const int64_t beyond = host_.connections - host_.options.max_connections;
      if (beyond < kRefusedConnections) {
        auto connection = std::make_shared<Connection>(std::move(socket), host_, loop.connections);
        asio::post(loop.io, [connection, refused = beyond >= 0] { connection->start(refused); });
      }
      accept_next();
    });
  }

  void each_connection(void (Connection::*act)()) {
    for (const auto& loop : loops_) {
      asio::post(loop->io, [act, &loop = *loop] {
        const ConnectionSet all = loop.connections;  // they leave the set when they close
        for (const auto& connection : all) ((*connection).*act)();
      });
    }
  }

  ConnectionHost host_;
  std::vector<std::unique_ptr<Loop>> loops_;
  std::optional<tcp::acceptor> acceptor_;
  std::optional<asio::steady_timer> pause_;
  uint16_t port_ = 0;
  size_t next_connection_ = 0;
  std::atomic<size_t> next_job_ = 0;
};

HttpServer::HttpServer(HttpOptions options, HttpHandler handler)
    : impl_(std::make_unique<Impl>(std::move(options), std::move(handler))) {}
HttpServer::~HttpServer() = default;
uint16_t HttpServer::port() const noexcept { return impl_->port(); }
void HttpServer::post(std::function<void()> job) { impl_->post(std::move(job)); }
int64_t HttpServer::connections() const noexcept { return impl_->connections(); }
int64_t HttpServer::open_requests() const noexcept { return impl_->open_requests(); }
void HttpServer::begin_drain() { impl_->begin_drain(); }
void HttpServer::stop() { impl_->stop(); }
void HttpServer::join() { impl_->join(); }

}  // namespace headrace::server
