#pragma once

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <unordered_set>

#include "server/http_answer.h"
#include "server/http_server.h"
#include "server/request_reader.h"

namespace headrace::server {

/// What all connections of a server share.
struct ConnectionHost {
  HttpOptions options;
  HttpHandler handler;
  std::unique_ptr<boost::asio::ssl::context> tls;  ///< nullptr: none
  std::atomic<bool> draining = false;
  std::atomic<bool> stopping = false;
  std::atomic<int64_t> open_requests = 0;
  std::atomic<int64_t> connections = 0;

  [[nodiscard]] HttpReply fault_reply(int status, std::string message) const;
};

class Connection;
using ConnectionSet = std::unordered_set<std::shared_ptr<Connection>>;

/// One client's connection: reads a request, hands it over, sends the answer, and so on. It always reads, so that it
/// notices when the client goes; what comes early waits. Threading: everything on the thread of the socket's context,
/// but for the functions of AnswerOutlet.
class Connection final : public AnswerOutlet, public std::enable_shared_from_this<Connection> {
 public:
  /// Is a member of `set` while it is open. `host` and `set` outlive the socket's context.
  Connection(boost::asio::ip::tcp::socket socket, ConnectionHost& host, ConnectionSet& set);

  /// Begins to serve; or, `refused`, answers 503 and closes.
  void start(bool refused);
  /// Closes if no request is being read or answered.
  void close_if_idle();
  /// Closes at once, whatever goes on.
  void close();

  void flush_soon() override;
  void cut_soon() override;
  [[nodiscard]] bool is_draining() const noexcept override { return host_.draining; }

 private:
  using Clock = std::chrono::steady_clock;
  enum class Phase { kHandshake, kReading, kAnswering, kClosing, kClosed };

  void tune_socket();
  void serve(bool refused);

  // Reading.
  void read_more();
  void on_read(const boost::system::error_code& ec, size_t bytes);
  void parse();
  void on_input_end(bool in_order);
  void send_continue();
  void hand_over();
  void answer_fault(int status, std::string message);

  // Writing.
  void flush();
  void write_some();
  void on_written(const boost::system::error_code& ec, size_t bytes);
  void next_request();

  // Closing.
  void begin_close();
  void end_tls();
  void cut();

  // Deadlines. The timer is not set again for each: it looks at them when it fires.
  void arm_timer();
  void on_timer();

  boost::asio::ip::tcp::socket socket_;
  std::optional<boost::asio::ssl::stream<boost::asio::ip::tcp::socket&>> tls_;
  ConnectionHost& host_;
  ConnectionSet& set_;
  std::string peer_;
  Phase phase_ = Phase::kHandshake;

  RequestReader reader_;
  std::string incoming_;  // what a read fills
  std::string input_;     // read, not parsed yet
  bool reading_ = false;
  bool input_ended_ = false;
  bool request_begun_ = false;  // a byte of the request has come
  bool continue_sent_ = false;
  Clock::time_point arrived_;

  std::shared_ptr<Answer> answer_;
  bool counted_ = false;  // among the open requests
  std::string out_;
  size_t out_sent_ = 0;
  bool writing_ = false;
  bool tls_ended_ = false;

  boost::asio::steady_timer timer_;
  Clock::time_point timer_set_for_ = Clock::time_point::max();
  Clock::time_point read_deadline_ = Clock::time_point::max();
  Clock::time_point write_deadline_ = Clock::time_point::max();
};

}  // namespace headrace::server
