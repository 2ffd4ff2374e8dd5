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

  HttpReply reply;
  std::string text;
  std::function<void()> gone;
  bool begun = false, ended = false, finished = false, aborted = false, reads_too_slowly = false, is_gone = false;
};

}  // namespace headrace::server
