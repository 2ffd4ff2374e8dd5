#include "server/http_connection.h"

#include <netinet/tcp.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <utility>

#include "base/cat.h"

namespace headrace::server {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

constexpr size_t kReadBytes = size_t{4} << 10;
constexpr size_t kReadBodyBytes = size_t{64} << 10;
// Buffers larger than this are given back between requests.
constexpr size_t kKeptBytes = size_t{64} << 10;
// What the kernel holds that the client's window has no room for. The rest waits with us, where it counts as unsent.
constexpr int kKernelUnsentBytes = 128 << 10;
// After our last byte, the client has this time to read it and to close; to close earlier while it still sends would
// reset the connection, and our answer could be lost with it.
constexpr std::chrono::seconds kLingerTime{5};
// A client that vanished without a word is noticed by probes: after 30 s without traffic, four of them.
constexpr int kProbeAfterSeconds = 30, kProbeEverySeconds = 10, kProbes = 4;

std::string peer_name(const asio::ip::tcp::socket& socket) {
  error_code ec;
  const auto peer = socket.remote_endpoint(ec);
  if (ec) return "unknown";
  const std::string address = peer.address().to_string();
  return peer.address().is_v6() ? cat("[", address, "]:", peer.port()) : cat(address, ":", peer.port());
}

}  // namespace

HttpReply ConnectionHost::fault_reply(int status, std::string message) const {
  if (options.fault_reply) return options.fault_reply(status, std::move(message));
  return {.status = status, .body = message + "\n", .content_type = "text/plain; charset=utf-8"};
}

Connection::Connection(asio::ip::tcp::socket socket, ConnectionHost& host, ConnectionSet& set)
    : socket_(std::move(socket)),
      host_(host),
      set_(set),
      reader_(host.options.max_header_bytes, host.options.max_body_bytes),
      timer_(socket_.get_executor()) {
  if (host_.tls) tls_.emplace(socket_, *host_.tls);
  ++host_.connections;
}

void Connection::start(bool refused) {
  set_.insert(shared_from_this());
  if (host_.stopping) return close();
  tune_socket();
  peer_ = peer_name(socket_);
  if (!tls_) return serve(refused);
  read_deadline_ = Clock::now() + host_.options.header_timeout;
  arm_timer();
  tls_->async_handshake(asio::ssl::stream_base::server, [self = shared_from_this(), refused](const error_code& ec) {
    if (self->phase_ != Phase::kHandshake) return;
    if (ec) return self->close();
    self->serve(refused);
  });
}

void Connection::tune_socket() {
  // What a kernel does not know is no reason to refuse a client.
  error_code ignored;
  socket_.set_option(asio::ip::tcp::no_delay(true), ignored);
  socket_.set_option(asio::socket_base::keep_alive(true), ignored);
  const auto set = [&](int name, int value) {
    (void)setsockopt(socket_.native_handle(), IPPROTO_TCP, name, &value, sizeof value);
  };
  set(TCP_NOTSENT_LOWAT, kKernelUnsentBytes);
  set(TCP_USER_TIMEOUT, static_cast<int>(host_.options.write_timeout.count()));
  set(TCP_KEEPIDLE, kProbeAfterSeconds);
  set(TCP_KEEPINTVL, kProbeEverySeconds);
  set(TCP_KEEPCNT, kProbes);
}

void Connection::serve(bool refused) {
  phase_ = Phase::kReading;
  if (refused) return answer_fault(503, cat("the server has ", host_.options.max_connections, " connections already"));
  read_deadline_ = Clock::now() + host_.options.idle_timeout;
  arm_timer();
  read_more();
}

void Connection::read_more() {
  if (reading_ || input_ended_) return;
  reading_ = true;
  const bool in_body = phase_ == Phase::kReading && reader_.head_complete();
  const size_t room = in_body ? kReadBodyBytes : kReadBytes;
  if (incoming_.size() != room) incoming_ = std::string(room, '\0');
  auto done = [self = shared_from_this()](const error_code& ec, size_t bytes) { self->on_read(ec, bytes); };
  if (tls_ && !tls_ended_) return tls_->async_read_some(asio::buffer(incoming_), std::move(done));
  socket_.async_read_some(asio::buffer(incoming_), std::move(done));
}

void Connection::on_read(const error_code& ec, size_t bytes) {
  reading_ = false;
  if (phase_ == Phase::kClosed) return;
  if (phase_ == Phase::kClosing) {
    if (tls_ && !tls_ended_) return end_tls();
    return ec ? close() : read_more();
  }
  if (ec) return on_input_end(ec == asio::error::eof);
  input_.append(incoming_, 0, bytes);
  if (phase_ == Phase::kReading) return parse();
  // Requests that come early wait; a client that sends more than any one request can be is not waited for.
  const int64_t limit = host_.options.max_header_bytes + host_.options.max_body_bytes;
  if (static_cast<int64_t>(input_.size()) > limit) return cut();
  read_more();
}

void Connection::on_input_end(bool in_order) {
  input_ended_ = true;
  // A client that waits for no more than the rest of a complete answer gets it. One that closed its side earlier has
  // gone: HTTP cannot tell it from one that only sends nothing more.
  if (in_order && phase_ == Phase::kAnswering && answer_->complete()) return;
  close();
}

void Connection::parse() {
  if (!request_begun_ && !input_.empty()) {
    request_begun_ = true;
    arrived_ = Clock::now();
    read_deadline_ = arrived_ + host_.options.header_timeout;
  }
  input_.erase(0, reader_.put(input_));
  if (reader_.fault()) return answer_fault(reader_.fault()->status, reader_.fault()->message);
  if (reader_.complete()) return hand_over();
  if (reader_.head_complete()) read_deadline_ = Clock::now() + host_.options.body_timeout;
  arm_timer();
  if (reader_.waits_for_continue() && !continue_sent_) send_continue();
  read_more();
}

void Connection::send_continue() {
  continue_sent_ = true;
  out_ = "HTTP/1.1 100 Continue\r\n\r\n";
  out_sent_ = 0;
  write_some();
}

void Connection::hand_over() {
  AnswerForm form{.http_1_1 = reader_.is_http_1_1(), .keep_alive = reader_.keep_alive()};
  HttpRequest request = reader_.take();
  form.head_only = request.method == "HEAD";
  request.peer = peer_;
  request.arrived = arrived_;
  answer_ = std::make_shared<Answer>(weak_from_this(), form, host_.options.max_unsent_bytes);
  counted_ = true;
  ++host_.open_requests;
  phase_ = Phase::kAnswering;
  read_deadline_ = Clock::time_point::max();
  read_more();
  const std::shared_ptr<Answer> answer = answer_;
  // Kept meanwhile: dropped by what unwinds, it would end the answer before it can be 500.
  const std::shared_ptr<Responder> responder = Answer::responder(answer);
  try {
    host_.handler(std::move(request), responder);
  } catch (const std::exception& error) {
    answer->fail(host_.fault_reply(500, error.what()));
  }
}

void Connection::answer_fault(int status, std::string message) {
  // Where the next request would begin is not known, so the connection ends.
  answer_ = std::make_shared<Answer>(weak_from_this(), AnswerForm{.keep_alive = false}, host_.options.max_unsent_bytes);
  phase_ = Phase::kAnswering;
  read_deadline_ = Clock::time_point::max();
  answer_->send(host_.fault_reply(status, std::move(message)));
}

void Connection::flush_soon() {
  asio::post(socket_.get_executor(), [self = shared_from_this()] { self->flush(); });
}

void Connection::cut_soon() {
  asio::post(socket_.get_executor(), [self = shared_from_this()] { self->cut(); });
}

void Connection::flush() {
  if (writing_ || phase_ != Phase::kAnswering) return;
  out_.clear();
  out_sent_ = 0;
  const Answer::Next next = answer_->take(out_);
  if (!out_.empty()) return write_some();
  if (next == Answer::Next::kNextRequest) return next_request();
  if (next == Answer::Next::kClose) return begin_close();
}

void Connection::write_some() {
  writing_ = true;
  write_deadline_ = Clock::now() + host_.options.write_timeout;
  arm_timer();
  const asio::const_buffer rest(out_.data() + out_sent_, out_.size() - out_sent_);
  auto done = [self = shared_from_this()](const error_code& ec, size_t bytes) { self->on_written(ec, bytes); };
  if (tls_) return tls_->async_write_some(rest, std::move(done));
  socket_.async_write_some(rest, std::move(done));
}

void Connection::on_written(const error_code& ec, size_t bytes) {
  writing_ = false;
  write_deadline_ = Clock::time_point::max();
  if (phase_ == Phase::kClosed) return;
  if (ec) return close();
  out_sent_ += bytes;
  if (answer_) answer_->sent(bytes);
  if (out_sent_ < out_.size()) return write_some();
  flush();
}

void Connection::next_request() {
  if (input_ended_ || host_.draining) return begin_close();
  answer_.reset();
  if (std::exchange(counted_, false)) --host_.open_requests;
  reader_ = RequestReader(host_.options.max_header_bytes, host_.options.max_body_bytes);
  request_begun_ = continue_sent_ = false;
  if (out_.capacity() > kKeptBytes) out_ = std::string();
  if (input_.empty() && input_.capacity() > kKeptBytes) input_ = std::string();
  phase_ = Phase::kReading;
  read_deadline_ = Clock::now() + host_.options.idle_timeout;
  parse();
}

void Connection::begin_close() {
  phase_ = Phase::kClosing;
  answer_.reset();
  if (std::exchange(counted_, false)) --host_.open_requests;
  if (input_ended_) return close();
  read_deadline_ = Clock::now() + kLingerTime;
  arm_timer();
  if (tls_) {
    // One operation at a time reads from the stream: the read that waits has to end first.
    error_code ignored;
    if (reading_) return socket_.cancel(ignored), void();
    return end_tls();
  }
  error_code ignored;
  socket_.shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
  read_more();
}

void Connection::end_tls() {
  tls_->async_shutdown([self = shared_from_this()](const error_code&) {
    // Clients that just close are common; what counts is that our side is said to be complete.
    if (self->phase_ == Phase::kClosed) return;
    self->tls_ended_ = true;
    error_code ignored;
    self->socket_.shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
    self->read_more();
  });
}

void Connection::close_if_idle() {
  if (phase_ == Phase::kReading && !request_begun_) begin_close();
}

void Connection::cut() {
  if (phase_ == Phase::kClosed) return;
  // A reset: neither the kernel nor the client goes on with what was sent before.
  error_code ignored;
  socket_.set_option(asio::socket_base::linger(true, 0), ignored);
  close();
}

void Connection::close() {
  if (phase_ == Phase::kClosed) return;
  phase_ = Phase::kClosed;
  const std::shared_ptr<Connection> self = shared_from_this();
  set_.erase(self);
  error_code ignored;
  socket_.close(ignored);
  timer_.cancel();
  --host_.connections;
  if (std::exchange(counted_, false)) --host_.open_requests;
  const std::shared_ptr<Answer> answer = std::move(answer_);
  if (!answer) return;
  if (const std::function<void()> callback = answer->client_gone()) callback();
}

void Connection::arm_timer() {
  const Clock::time_point next = std::min(read_deadline_, write_deadline_);
  if (next >= timer_set_for_) return;
  timer_set_for_ = next;
  timer_.expires_at(next);
  timer_.async_wait([self = shared_from_this()](const error_code& ec) {
    if (!ec) self->on_timer();
  });
}

void Connection::on_timer() {
  timer_set_for_ = Clock::time_point::max();
  if (phase_ == Phase::kClosed) return;
  const Clock::time_point now = Clock::now();
  if (now >= write_deadline_) return cut();
  if (now >= read_deadline_) {
    if (phase_ != Phase::kReading || !request_begun_) return close();
    return answer_fault(408, reader_.head_complete() ? "the body of the request came too slowly"
                                                     : "the head of the request came too slowly");
  }
  arm_timer();
}

}  // namespace headrace::server
