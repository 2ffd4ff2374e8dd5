#pragma once

#include <functional>
#include <string>
#include <utility>

#include "server/responder.h"

namespace headrace::server {

/// For tests: keeps what is answered. Threading: one thread.
class FakeResponder final : public Responder {
 public:
  void send(HttpReply whole) override {
    reply = std::move(whole);
    ended = true;
  }
  void begin(HttpReply head) override {
    reply = std::move(head);
    begun = true;
  }
  bool write(std::string_view bytes) override {
    if (reads_too_slowly) return false;
    text += bytes;
    return true;
  }
  void finish() override { ended = finished = true; }
  void abort() override { ended = aborted = true; }
  void on_gone(std::function<void()> callback) override {
    if (is_gone) return callback();
    gone = std::move(callback);
  }
  [[nodiscard]] bool has_client() const override { return !was_gone; }

  HttpReply reply;
  std::string text;
  std::function<void()> gone;
  bool begun = false, ended = false, finished = false, aborted = false, reads_too_slowly = false;
  bool was_gone = false;  ///< before anything was done for it
  bool is_gone = false;   ///< as soon as anyone wants to hear of it
};

}  // namespace headrace::server
