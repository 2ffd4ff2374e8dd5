#pragma once

#include <exception>

#include "headrace/generation.h"

namespace headrace::server {

/// Makes what a client is sent of the events of one body's requests, in the shape of one API. One thread at a time.
class AnswerSender {
 public:
  AnswerSender() = default;
  AnswerSender(const AnswerSender&) = delete;
  AnswerSender& operator=(const AnswerSender&) = delete;
  virtual ~AnswerSender() = default;

  /// An event without error of the request at `request`. False: the client has gone, or reads too slowly.
  [[nodiscard]] virtual bool add(size_t request, GenerationEvent event) = 0;
  /// Whether the answer is complete and was sent.
  [[nodiscard]] virtual bool finished() const noexcept = 0;
  /// Whether a choice ended with calls of tools.
  [[nodiscard]] virtual bool calls_tools() const noexcept = 0;
  /// Sends an error in place of what is missing; returns the HTTP status that the log shows.
  virtual int fail(const std::exception& error) = 0;
};

}  // namespace headrace::server
