#include "client/http_client.h"

#include <array>
#include <cstring>
#include <exception>
#include <unordered_map>
#include <utility>

#include "base/cat.h"
#include "base/error.h"
#include "client/event_wait.h"
#include "files/curl_handles.h"

namespace headrace::client {
namespace {

using Clock = std::chrono::steady_clock;

struct FreeMulti {
  void operator()(CURLM* multi) const noexcept { curl_multi_cleanup(multi); }
};

struct Exchange {
  std::unique_ptr<CURL, CurlDeleter> easy;
  std::unique_ptr<curl_slist, CurlDeleter> headers;
  std::string body;
  HttpHandler* handler = nullptr;
  int64_t status = 0;
  std::exception_ptr thrown;
  std::array<char, CURL_ERROR_SIZE> error{};
};

size_t on_body(char* bytes, size_t, size_t count, void* user) noexcept {
  const Time now = Clock::now();
  auto& exchange = *static_cast<Exchange*>(user);
  if (exchange.status == 0) {
    long status = 0;
    curl_easy_getinfo(exchange.easy.get(), CURLINFO_RESPONSE_CODE, &status);
    exchange.status = status;
  }
  try {
    exchange.handler->on_bytes(exchange.status, {bytes, count}, now);
    return count;
  } catch (...) {
    exchange.thrown = std::current_exception();
    return 0;  // ends the exchange
  }
}

}  // namespace

struct HttpClient::State {
  explicit State(Options given) : options(given) {}

  Options options;
  EventWait events;
  std::vector<std::unique_ptr<CURL, CurlDeleter>> spare;
  std::unique_ptr<CURLM, FreeMulti> multi;
  std::unordered_map<HttpHandler*, std::unique_ptr<Exchange>> running;

  static int on_socket(CURL*, curl_socket_t fd, int what, void* user, void* known) noexcept {
    auto& self = *static_cast<State*>(user);
    const uint32_t events = what == CURL_POLL_REMOVE ? 0u
                                                     : ((what & CURL_POLL_IN) != 0 ? uint32_t{EPOLLIN} : 0u) |
                                                           ((what & CURL_POLL_OUT) != 0 ? uint32_t{EPOLLOUT} : 0u);
    self.events.watch(fd, events, known != nullptr);
    curl_multi_assign(self.multi.get(), fd, events == 0 ? nullptr : &self);
    return 0;
  }
  void act(curl_socket_t fd, int flags) const {
    int count = 0;
    curl_multi_socket_action(multi.get(), fd, flags, &count);
  }
  void fire_timers() const { act(CURL_SOCKET_TIMEOUT, 0); }
  /// When the library wants to be called next. It is asked each time: its callback about timers keeps silent where a
  /// timer that fired too early stays the next one.
  [[nodiscard]] Time next_timer() const {
    long milliseconds = -1;
    curl_multi_timeout(multi.get(), &milliseconds);
    return milliseconds < 0 ? Time::max() : Clock::now() + std::chrono::milliseconds(milliseconds);
  }
  std::unique_ptr<Exchange> take(HttpHandler* handler) {
    auto node = running.extract(handler);
    if (node.empty()) return nullptr;
    std::unique_ptr<Exchange> exchange = std::move(node.mapped());
    curl_multi_remove_handle(multi.get(), exchange->easy.get());
    return exchange;
  }
  /// Calls on_end of those that are over; false: there are none.
  bool finish_exchanges();
};

HttpClient::HttpClient(Options options) {
  start_libcurl();
  state_ = std::make_unique<State>(options);
  state_->multi.reset(curl_multi_init());
  if (!state_->multi) throw Error(ErrorCode::kOutOfMemory, "libcurl cannot be set up");
  CURLM* multi = state_->multi.get();
  curl_multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, State::on_socket);
  curl_multi_setopt(multi, CURLMOPT_SOCKETDATA, state_.get());
  constexpr long kConnectionsKept = 4096;
  curl_multi_setopt(multi, CURLMOPT_MAXCONNECTS, kConnectionsKept);
}

HttpClient::~HttpClient() {
  for (auto& [handler, exchange] : state_->running) {
    curl_multi_remove_handle(state_->multi.get(), exchange->easy.get());
  }
}

void HttpClient::start(const HttpRequest& request, HttpHandler& handler) {
  auto exchange = std::make_unique<Exchange>();
  if (state_->spare.empty()) {
    exchange->easy.reset(curl_easy_init());
    if (!exchange->easy) throw Error(ErrorCode::kOutOfMemory, "libcurl cannot start a request");
  } else {
    exchange->easy = std::move(state_->spare.back());
    state_->spare.pop_back();
    curl_easy_reset(exchange->easy.get());
  }
  CURL* easy = exchange->easy.get();
  exchange->body = request.body;
  exchange->handler = &handler;
  const auto add_header = [&](const char* header) {
    exchange->headers.reset(curl_slist_append(exchange->headers.release(), header));
  };
  add_header("Expect:");  // a body is sent without asking first
  for (const std::string& header : request.headers) add_header(header.c_str());
  curl_easy_setopt(easy, CURLOPT_URL, request.url.c_str());
  curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(easy, CURLOPT_PROXY, "");  // the server is measured, not a way to it
  curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(easy, CURLOPT_HTTPHEADER, exchange->headers.get());
  curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
  curl_easy_setopt(easy, CURLOPT_WRITEDATA, exchange.get());
  curl_easy_setopt(easy, CURLOPT_PRIVATE, &handler);
  curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, exchange->error.data());
  curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, static_cast<long>(request.timeout_seconds * 1e3));
  curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(state_->options.connect_timeout_seconds * 1e3));
  if (!state_->options.verify_peer) {
    curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 0L);
    curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 0L);
  }
  if (!request.body.empty()) {
    curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(exchange->body.size()));
    curl_easy_setopt(easy, CURLOPT_POSTFIELDS, exchange->body.data());
  }
  state_->running[&handler] = std::move(exchange);
  if (const CURLMcode code = curl_multi_add_handle(state_->multi.get(), easy); code != CURLM_OK) {
    state_->running.erase(&handler);
    throw Error(ErrorCode::kInternal, cat(request.url, ": ", curl_multi_strerror(code)));
  }
  state_->fire_timers();
}

void HttpClient::cancel(HttpHandler& handler) {
  const std::unique_ptr<Exchange> exchange = state_->take(&handler);
  if (!exchange) return;
  handler.on_end({.status = exchange->status, .error = "cancelled", .cancelled = true, .at = Clock::now()});
}

bool HttpClient::State::finish_exchanges() {
  bool any = false;
  std::exception_ptr thrown;
  int left = 0;
  while (const CURLMsg* message = curl_multi_info_read(multi.get(), &left)) {
    if (message->msg != CURLMSG_DONE) continue;
    const CURLcode code = message->data.result;
    CURL* easy = message->easy_handle;
    void* key = nullptr;
    curl_easy_getinfo(easy, CURLINFO_PRIVATE, &key);
    long status = 0;
    curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
    std::unique_ptr<Exchange> exchange = take(static_cast<HttpHandler*>(key));
    if (!exchange) continue;
    any = true;
    if (exchange->thrown && !thrown) thrown = exchange->thrown;
    HttpEnd end{.status = status, .error = {}, .cancelled = false, .at = Clock::now()};
    if (code != CURLE_OK) end.error = exchange->error[0] != 0 ? exchange->error.data() : curl_easy_strerror(code);
    spare.push_back(std::move(exchange->easy));
    exchange->handler->on_end(end);
  }
  if (thrown) std::rethrow_exception(thrown);
  return any;
}

double HttpClient::turn(Time deadline) {
  // An answer can be there as soon as its request is sent, in start(): then no socket will tell of it.
  if (state_->finish_exchanges()) deadline = Clock::now();
  std::array<epoll_event, 128> room;
  const Time timer = state_->next_timer();
  const std::span<epoll_event> ready = state_->events.wait(std::min(deadline, timer), room);
  const Time begin = Clock::now();
  for (const epoll_event& event : ready) {
    const uint32_t got = event.events;
    const int flags = ((got & EPOLLIN) != 0 ? CURL_CSELECT_IN : 0) | ((got & EPOLLOUT) != 0 ? CURL_CSELECT_OUT : 0) |
                      ((got & (EPOLLERR | EPOLLHUP)) != 0 ? CURL_CSELECT_ERR : 0);
    state_->act(event.data.fd, flags);
  }
  if (timer <= begin) state_->fire_timers();
  (void)state_->finish_exchanges();
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

size_t HttpClient::num_running() const noexcept { return state_->running.size(); }

HttpAnswer HttpClient::fetch(const HttpRequest& request) {
  struct Collector : HttpHandler {
    HttpAnswer answer;
    bool ended = false;
    void on_bytes(int64_t, std::string_view bytes, Time) override { answer.body += bytes; }
    void on_end(const HttpEnd& end) override {
      answer.status = end.status;
      answer.error = end.error;
      ended = true;
    }
  } collector;
  start(request, collector);
  while (!collector.ended) (void)turn(Clock::now() + std::chrono::seconds(1));
  return std::move(collector.answer);
}

}  // namespace headrace::client
