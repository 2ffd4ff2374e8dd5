#include "server/http_answer.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <ctime>
#include <utility>

#include "base/cat.h"
#include "server/request_reader.h"

namespace headrace::server {
namespace {

class AnswerResponder final : public Responder {
 public:
  explicit AnswerResponder(std::shared_ptr<Answer> answer) : answer_(std::move(answer)) {}
  ~AnswerResponder() override { answer_->abort(); }
  // Each keeps the answer: the end of it may drop the last reference to this object, held by the callback.
  void send(HttpReply reply) override { std::shared_ptr(answer_)->send(reply); }
  void begin(HttpReply head) override { std::shared_ptr(answer_)->begin(head); }
  bool write(std::string_view bytes) override { return answer_->write(bytes); }
  void finish() override { std::shared_ptr(answer_)->finish(); }
  void abort() override { std::shared_ptr(answer_)->abort(); }
  void on_gone(std::function<void()> callback) override { std::shared_ptr(answer_)->on_gone(std::move(callback)); }
  [[nodiscard]] bool has_client() const override { return answer_->has_client(); }

 private:
  std::shared_ptr<Answer> answer_;
};

// "Mon, 30 Nov 2026 08:00:00 GMT" (RFC 9110, 5.6.7).
void append_date(std::string& out) {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  std::array<char, 40> text;
  out.append(text.data(), std::strftime(text.data(), text.size(), "%a, %d %b %Y %H:%M:%S GMT", &parts));
}

// A line break in a value would begin a header that nobody meant.
void append_value(std::string& out, std::string_view value) {
  for (const char c : value) out += static_cast<unsigned char>(c) < 0x20 && c != '\t' ? ' ' : c;
}

bool has_no_body(int status) noexcept { return status < 200 || status == 204 || status == 304; }

}  // namespace

std::shared_ptr<Responder> Answer::responder(std::shared_ptr<Answer> answer) {
  return std::make_shared<AnswerResponder>(std::move(answer));
}

void Answer::append_head(const HttpReply& reply, bool in_pieces) {
  const std::shared_ptr<AnswerOutlet> outlet = outlet_.lock();
  const bool ends_with_connection = in_pieces && !form_.http_1_1 && !has_no_body(reply.status) && !form_.head_only;
  keeps_alive_ = form_.keep_alive && !ends_with_connection && outlet && !outlet->is_draining();
  waiting_ += cat("HTTP/1.1 ", reply.status, " ", reason_phrase(reply.status), "\r\nDate: ");
  append_date(waiting_);
  if (!has_no_body(reply.status)) {
    waiting_ += "\r\nContent-Type: ";
    append_value(waiting_, reply.content_type);
    if (!in_pieces) waiting_ += cat("\r\nContent-Length: ", reply.body.size());
    if (in_pieces && form_.http_1_1) waiting_ += "\r\nTransfer-Encoding: chunked";
  }
  if (!keeps_alive_) waiting_ += "\r\nConnection: close";
  if (keeps_alive_ && !form_.http_1_1) waiting_ += "\r\nConnection: keep-alive";
  for (const Header& header : reply.headers) {
    waiting_ += cat("\r\n", header.name, ": ");
    append_value(waiting_, header.value);
  }
  waiting_ += "\r\n\r\n";
  has_body_ = !has_no_body(reply.status) && !form_.head_only;
}

void Answer::end(Stage stage, std::function<void()>& callback) {
  stage_ = stage;
  callback = std::exchange(callback_, nullptr);
  ask_for_flush();
}

void Answer::ask_for_flush() {
  // While bytes are in flight, the connection takes the next ones by itself.
  if (flush_asked_ || in_flight_ > 0) return;
  if (const std::shared_ptr<AnswerOutlet> outlet = outlet_.lock()) {
    flush_asked_ = true;
    outlet->flush_soon();
  }
}

// In all of these, `callback` is destroyed after the lock: it may hold what calls this object again.

void Answer::send(const HttpReply& reply) {
  std::function<void()> callback;
  const std::scoped_lock lock(mutex_);
  if (stage_ != Stage::kNothing) return;
  append_head(reply, false);
  if (has_body_) waiting_ += reply.body;
  end(Stage::kComplete, callback);
}

void Answer::begin(const HttpReply& head) {
  const std::scoped_lock lock(mutex_);
  if (stage_ != Stage::kNothing) return;
  append_head(head, true);
  stage_ = Stage::kPieces;
  ask_for_flush();
}

bool Answer::write(std::string_view bytes) {
  const std::scoped_lock lock(mutex_);
  if (stage_ != Stage::kPieces || bytes.empty()) return stage_ != Stage::kGone;
  // Before the socket was asked, it is not for the client that bytes wait.
  if (in_flight_ > 0 && in_flight_ + waiting_.size() > max_unsent_bytes_) {
    stage_ = Stage::kGone;
    if (const std::shared_ptr<AnswerOutlet> outlet = outlet_.lock()) outlet->cut_soon();
    return false;
  }
  if (!has_body_) return true;
  if (form_.http_1_1) {
    std::array<char, 16> size;
    waiting_.append(size.data(), std::to_chars(size.data(), size.data() + size.size(), bytes.size(), 16).ptr);
    waiting_ += "\r\n";
  }
  waiting_ += bytes;
  if (form_.http_1_1) waiting_ += "\r\n";
  ask_for_flush();
  return true;
}

void Answer::finish() {
  std::function<void()> callback;
  const std::scoped_lock lock(mutex_);
  if (stage_ != Stage::kPieces) return;
  if (has_body_ && form_.http_1_1) waiting_ += "0\r\n\r\n";
  end(Stage::kComplete, callback);
}

void Answer::abort() {
  std::function<void()> callback;
  const std::scoped_lock lock(mutex_);
  if (stage_ == Stage::kNothing || stage_ == Stage::kPieces) end(Stage::kAborted, callback);
}

void Answer::fail(const HttpReply& reply) {
  send(reply);
  abort();
}

void Answer::on_gone(std::function<void()> callback) {
  {
    const std::scoped_lock lock(mutex_);
    if (stage_ == Stage::kNothing || stage_ == Stage::kPieces) callback_.swap(callback);
    if (stage_ != Stage::kGone) return;
  }
  callback();
}

bool Answer::has_client() const {
  const std::scoped_lock lock(mutex_);
  return stage_ != Stage::kGone;
}

Answer::Next Answer::take(std::string& out) {
  const std::scoped_lock lock(mutex_);
  out.swap(waiting_);
  in_flight_ = out.size();
  flush_asked_ = false;
  if (stage_ == Stage::kNothing || stage_ == Stage::kPieces) return Next::kMore;
  return stage_ == Stage::kComplete && keeps_alive_ ? Next::kNextRequest : Next::kClose;
}

void Answer::sent(size_t bytes) {
  const std::scoped_lock lock(mutex_);
  in_flight_ -= std::min(in_flight_, bytes);
}

bool Answer::complete() const {
  const std::scoped_lock lock(mutex_);
  return stage_ == Stage::kComplete;
}

std::function<void()> Answer::client_gone() {
  const std::scoped_lock lock(mutex_);
  if (stage_ != Stage::kComplete && stage_ != Stage::kAborted) stage_ = Stage::kGone;
  return std::exchange(callback_, nullptr);
}

}  // namespace headrace::server
