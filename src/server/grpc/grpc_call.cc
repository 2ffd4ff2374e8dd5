#include "server/grpc/grpc_call.h"

#include <array>
#include <utility>

#include "base/ascii_text.h"
#include "openai/fields.h"
#include "server/responder.h"

namespace headrace::server {
namespace {

grpc::StatusCode code_of(int http_status) noexcept {
  switch (http_status) {
    case 401:
      return grpc::StatusCode::UNAUTHENTICATED;
    case 403:
      return grpc::StatusCode::PERMISSION_DENIED;
    case 404:
      return grpc::StatusCode::NOT_FOUND;
    case 429:
      return grpc::StatusCode::RESOURCE_EXHAUSTED;
    case 499:
      return grpc::StatusCode::CANCELLED;
    case 501:
      return grpc::StatusCode::UNIMPLEMENTED;
    case 503:
      return grpc::StatusCode::UNAVAILABLE;
    case 504:
      return grpc::StatusCode::DEADLINE_EXCEEDED;
    default:
      return http_status < 500 ? grpc::StatusCode::INVALID_ARGUMENT : grpc::StatusCode::INTERNAL;
  }
}

// Clients take 8 KiB of metadata, unless told otherwise.
constexpr size_t kMostMessageBytes = 1500;

struct ErrorParts {
  std::string object;  // {"message", "type", "param", "code"}
  std::string message;
};

/// Of the body of an error.
ErrorParts error_parts(const HttpReply& reply) {
  openai::Json body = openai::Json::parse(reply.body, nullptr, false);
  if (!body.is_object() || !body.contains("error")) return {.object = {}, .message = reply.body};
  openai::Json& error = body["error"];
  std::string message = error.value("message", std::string());
  if (message.size() > kMostMessageBytes) message = message.substr(0, kMostMessageBytes) + "...";
  error["message"] = message;
  return {.object = openai::to_text(error), .message = std::move(message)};
}

grpc::ByteBuffer buffer_of(std::string_view bytes) {
  const grpc::Slice slice(bytes.data(), bytes.size());
  return {&slice, 1};
}

std::string text_of(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  std::string text;
  if (!buffer.Dump(&slices).ok()) return text;
  text.reserve(buffer.Length());
  for (const grpc::Slice& slice : slices) text.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  return text;
}

/// Hands a call's answer to the endpoint.
class CallResponder final : public Responder {
 public:
  explicit CallResponder(std::shared_ptr<CallAnswer> answer) : answer_(std::move(answer)) {}
  ~CallResponder() override { answer_->finish({grpc::StatusCode::INTERNAL, "the call was not answered"}); }

  void send(HttpReply reply) override { answer_->send(std::move(reply)); }
  void begin(HttpReply head) override { answer_->begin(head); }
  bool write(std::string_view bytes) override { return answer_->write(bytes); }
  void finish() override { answer_->finish(grpc::Status::OK); }
  void abort() override { answer_->finish({grpc::StatusCode::ABORTED, "the answer was cut off"}); }
  void on_gone(std::function<void()> callback) override { answer_->on_gone(std::move(callback)); }
  bool has_client() const override { return answer_->has_client(); }

 private:
  std::shared_ptr<CallAnswer> answer_;
};

std::chrono::steady_clock::time_point steady(std::chrono::system_clock::time_point time) {
  // Far deadlines would overflow.
  const std::chrono::duration<double> left = time - std::chrono::system_clock::now();
  const auto bounded = std::chrono::duration<double>(std::min(left.count(), 1e9));
  return std::chrono::steady_clock::now() + std::chrono::duration_cast<std::chrono::steady_clock::duration>(bounded);
}

HttpRequest request_of(const grpc::GenericCallbackServerContext& context, std::string message) {
  HttpRequest request{.method = "POST",
                      .path = context.method(),
                      .query = {},
                      .headers = {},
                      .body = std::move(message),
                      .peer = context.peer(),
                      .arrived = std::chrono::steady_clock::now()};
  for (const auto& [name, value] : context.client_metadata()) {
    request.headers.push_back({std::string(name.data(), name.size()), std::string(value.data(), value.size())});
  }
  const auto deadline = context.deadline();
  if (deadline != std::chrono::system_clock::time_point::max()) request.deadline = steady(deadline);
  return request;
}

}  // namespace

void CallAnswer::send(HttpReply reply) {
  const std::lock_guard lock(mutex_);
  if (reactor_ == nullptr || status_) return;
  if (reply.status == 200) {
    for (const Header& header : reply.headers) context_->AddInitialMetadata(ascii_lower(header.name), header.value);
    add_message(reply.body);
    return end(grpc::Status::OK);
  }
  ErrorParts error = error_parts(reply);
  for (const Header& header : reply.headers) context_->AddTrailingMetadata(ascii_lower(header.name), header.value);
  if (!error.object.empty()) context_->AddTrailingMetadata("headrace-error-bin", error.object);
  end({code_of(reply.status), std::move(error.message)});
}

void CallAnswer::begin(const HttpReply& head) {
  const std::lock_guard lock(mutex_);
  if (reactor_ == nullptr || status_) return;
  for (const Header& header : head.headers) context_->AddInitialMetadata(ascii_lower(header.name), header.value);
}

bool CallAnswer::write(std::string_view bytes) {
  const std::lock_guard lock(mutex_);
  if (reactor_ == nullptr || status_ || gone_) return false;
  const bool too_much = waiting_bytes_ + bytes.size() > static_cast<size_t>(options_.max_unsent_bytes);
  if (writing_ && (too_much || Clock::now() - write_began_ > options_.write_timeout)) {
    cut("the client reads too slowly");
    return false;
  }
  add_message(bytes);
  go_on();
  return true;
}

void CallAnswer::finish(grpc::Status status) {
  const std::lock_guard lock(mutex_);
  if (reactor_ != nullptr && !status_) end(std::move(status));
}

void CallAnswer::on_gone(std::function<void()> callback) {
  {
    const std::lock_guard lock(mutex_);
    if (!gone_) {
      if (!status_) on_gone_ = std::move(callback);
      return;
    }
  }
  callback();
}

bool CallAnswer::has_client() {
  const std::lock_guard lock(mutex_);
  return reactor_ != nullptr && !gone_;
}

void CallAnswer::written(bool ok) {
  const std::lock_guard lock(mutex_);
  writing_ = false;
  waiting_bytes_ -= messages_.front().Length();
  messages_.pop_front();
  if (!ok) {  // OnCancel follows
    gone_ = true;
    if (!status_) status_ = grpc::Status::CANCELLED;
  }
  go_on();
}

void CallAnswer::cancelled() {
  std::function<void()> callback;
  {
    const std::lock_guard lock(mutex_);
    if (finishing_ && !gone_) return;  // the answer was complete
    gone_ = true;
    if (!status_) status_ = grpc::Status::CANCELLED;
    callback.swap(on_gone_);
    go_on();
  }
  if (callback) callback();
}

void CallAnswer::give_up(const std::string& why) {
  const std::lock_guard lock(mutex_);
  if (reactor_ != nullptr && !status_) cut(why);
}

void CallAnswer::done() {
  std::function<void()> callback;
  bool gone = false;
  {
    const std::lock_guard lock(mutex_);
    reactor_ = nullptr;
    context_ = nullptr;
    callback.swap(on_gone_);  // it may hold whoever answers
    gone = gone_;
  }
  if (gone && callback) callback();
}

void CallAnswer::add_message(std::string_view bytes) {
  messages_.push_back(buffer_of(bytes));
  waiting_bytes_ += bytes.size();
}

void CallAnswer::end(grpc::Status status) {
  status_ = std::move(status);
  go_on();
}

void CallAnswer::cut(const std::string& why) {
  gone_ = true;
  status_ = grpc::Status(grpc::StatusCode::CANCELLED, why);
  context_->TryCancel();  // what hangs ends, and OnCancel follows
}

void CallAnswer::go_on() {
  if (reactor_ == nullptr || finishing_ || writing_) return;
  if (gone_) messages_.clear();
  if (!messages_.empty()) {
    writing_ = true;
    write_began_ = Clock::now();
    reactor_->StartWrite(&messages_.front());
  } else if (status_) {
    finishing_ = true;
    reactor_->Finish(*status_);
  }
}

CallReactor::CallReactor(CallHost& host, grpc::GenericCallbackServerContext& context)
    : host_(host), context_(context), answer_(std::make_shared<CallAnswer>(*this, context, host.options)) {
  ++host_.open_calls;
  patience_.Set(std::chrono::system_clock::now() + host.options.body_timeout, [answer = answer_](bool is_over) {
    if (is_over) answer->give_up("no message came in time");
  });
  StartRead(&message_);
}

void CallReactor::OnReadDone(bool ok) {
  patience_.Cancel();
  if (!ok) return answer_->finish({grpc::StatusCode::INVALID_ARGUMENT, "the call came without a message"});
  HttpRequest request = request_of(context_, text_of(message_));
  message_.Clear();
  host_.handler(std::move(request), std::make_shared<CallResponder>(answer_));
}

void CallReactor::OnDone() {
  answer_->done();
  --host_.open_calls;
  delete this;
}

}  // namespace headrace::server
