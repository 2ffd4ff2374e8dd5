#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "server/http_message.h"
#include "server/responder.h"

namespace headrace::server {

/// A connection, as the answer sees it that goes out by it. Any thread; neither function does its work at once.
class AnswerOutlet {
 public:
  AnswerOutlet() = default;
  AnswerOutlet(const AnswerOutlet&) = delete;
  AnswerOutlet& operator=(const AnswerOutlet&) = delete;
  virtual ~AnswerOutlet() = default;
  /// There is something to take.
  virtual void flush_soon() = 0;
  /// The client reads too slowly: the connection is to be cut off.
  virtual void cut_soon() = 0;
  /// Answers have to close their connections.
  [[nodiscard]] virtual bool is_draining() const noexcept = 0;
};

/// The request's part in the form of its answer.
struct AnswerForm {
  bool http_1_1 = true;     ///< else pieces end with the connection
  bool head_only = false;   ///< the method was HEAD
  bool keep_alive = false;  ///< the client may send another request
};

/// The bytes of one answer between whoever makes it and the connection. Threading: every function from any thread.
class Answer {
 public:
  Answer(std::weak_ptr<AnswerOutlet> outlet, AnswerForm form, int64_t max_unsent_bytes)
      : outlet_(std::move(outlet)), form_(form), max_unsent_bytes_(static_cast<size_t>(max_unsent_bytes)) {}
  /// A way to give this answer; dropped before the end, it ends with abort().
  [[nodiscard]] static std::shared_ptr<Responder> responder(std::shared_ptr<Answer> answer);

  // As in Responder.
  void send(const HttpReply& reply);
  void begin(const HttpReply& head);
  bool write(std::string_view bytes);
  void finish();
  void abort();
  void on_gone(std::function<void()> callback);
  [[nodiscard]] bool has_client() const;
  /// Sends the reply if nothing was sent; else abort().
  void fail(const HttpReply& reply);

  // For the connection.
  enum class Next { kMore, kNextRequest, kClose };
  /// Moves what waits to `out`, which is empty, and says what comes after it. The bytes count as unsent until sent().
  [[nodiscard]] Next take(std::string& out);
  /// The client's side of the connection took `bytes` of them.
  void sent(size_t bytes);
  [[nodiscard]] bool complete() const;
  /// The connection is closed. Gives the callback to call, if any.
  [[nodiscard]] std::function<void()> client_gone();

 private:
  enum class Stage { kNothing, kPieces, kComplete, kAborted, kGone };
  // All with the mutex held.
  void append_head(const HttpReply& reply, bool in_pieces);
  void end(Stage stage, std::function<void()>& callback);
  void ask_for_flush();

  const std::weak_ptr<AnswerOutlet> outlet_;
  const AnswerForm form_;
  const size_t max_unsent_bytes_;

  mutable std::mutex mutex_;
  Stage stage_ = Stage::kNothing;
  std::string waiting_;
  size_t in_flight_ = 0;      // taken, not sent
  bool flush_asked_ = false;  // and take() not called since
  bool keeps_alive_ = false;  // as the head says
  bool has_body_ = false;     // as it goes out
  std::function<void()> callback_;
};

}  // namespace headrace::server
