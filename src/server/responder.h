#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "server/http_message.h"

namespace headrace::server {

/// The way back to a client for the answer to one request: whole (send), or in pieces (begin, write..., finish).
/// Threading: every function from any thread; none waits for the client. Calls after the end, or once the client has
/// gone, do nothing. Dropping the last reference without an answer closes the connection.
class Responder {
 public:
  Responder() = default;
  Responder(const Responder&) = delete;
  Responder& operator=(const Responder&) = delete;
  virtual ~Responder() = default;

  virtual void send(HttpReply reply) = 0;
  /// Sends the head of an answer in pieces; `head.body` is ignored.
  virtual void begin(HttpReply head) = 0;
  /// Adds a piece. False: the client has gone, or was cut off because it reads too slowly.
  virtual bool write(std::string_view bytes) = 0;
  /// The answer is complete.
  virtual void finish() = 0;
  /// Closes the connection after what was written, without the mark that says that the answer is complete.
  virtual void abort() = 0;
  /// `callback` is called once, from an I/O thread, if the client goes (or is cut off) before the answer is complete;
  /// at once if it has gone already. One callback a request.
  virtual void on_gone(std::function<void()> callback) = 0;
  /// False once the client has gone: work for it can be spared.
  [[nodiscard]] virtual bool has_client() const = 0;
};

}  // namespace headrace::server
