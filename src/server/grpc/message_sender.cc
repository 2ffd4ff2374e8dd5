#include "server/grpc/message_sender.h"

#include <utility>

#include "headrace/v1/generation.pb.h"
#include "rpc/event_message.h"
#include "server/error_reply.h"

namespace headrace::server {

bool MessageSender::add(size_t, GenerationEvent event) {
  finished_ = event.last;
  if (!streams_) {
    add_event(std::move(event), answer_);
    if (finished_) responder_->send({.body = rpc::answer_message(answer_).SerializeAsString()});
    return true;
  }
  if (!std::exchange(begun_, true)) responder_->begin({});
  if (!responder_->write(rpc::event_message(event).SerializeAsString())) return false;
  if (finished_) responder_->finish();
  return true;
}

int MessageSender::fail(const std::exception& error) {
  HttpReply reply = error_reply(error);
  const int status = reply.status;
  responder_->send(std::move(reply));
  return status;
}

}  // namespace headrace::server
