#include "server/trace_exporter.h"

#include <algorithm>
#include <condition_variable>
#include <iterator>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "base/cat.h"
#include "base/error.h"
#include "base/log.h"
#include "client/http_client.h"
#include "files/curl_handles.h"
#include "server/otlp_json.h"

namespace headrace::server {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kMaxWaiting = 2048;
constexpr size_t kBatch = 128;
constexpr std::chrono::milliseconds kGather{500};  // spans of this time go together
constexpr double kConnectTimeoutSeconds = 1;
constexpr double kSendTimeoutSeconds = 5;
constexpr std::chrono::milliseconds kLookForEnd{50};  // while a collector is waited for
constexpr std::chrono::seconds kLastWords{2};

void check_endpoint(const std::string& endpoint) {
  const std::unique_ptr<CURLU, CurlDeleter> url(curl_url());
  char* scheme = nullptr;
  const bool is_url = url && curl_url_set(url.get(), CURLUPART_URL, endpoint.c_str(), 0) == CURLUE_OK &&
                      curl_url_get(url.get(), CURLUPART_SCHEME, &scheme, 0) == CURLUE_OK;
  const std::string found = scheme != nullptr ? scheme : "";
  curl_free(scheme);
  if (!is_url || (found != "http" && found != "https")) {
    throw Error(ErrorCode::kInvalidArgument,
                cat("\"", printable(endpoint), "\" is no address of a trace collector; expected http://HOST:4318",
                    "/v1/traces"));
  }
}

/// How a collector took what it was sent.
struct Collected final : client::HttpHandler {
  void on_bytes(int64_t, std::string_view, client::Time) override {}
  void on_end(const client::HttpEnd& how) override { end = how; }

  std::optional<client::HttpEnd> end;
};

}  // namespace

class TraceExporter::Impl {
 public:
  explicit Impl(const std::string& endpoint) : endpoint_(endpoint) {
    check_endpoint(endpoint);
    thread_ = std::thread([this] { run(); });
  }

  ~Impl() {
    {
      const std::scoped_lock lock(mutex_);
      stop_ = true;
      give_up_at_ = Clock::now() + kLastWords;
    }
    wake_.notify_one();
    thread_.join();
  }

  void add(RequestSpan span) {
    const std::scoped_lock lock(mutex_);
    if (waiting_.size() >= kMaxWaiting) {
      ++dropped_;
      return;
    }
    waiting_.push_back(std::move(span));
    if (waiting_.size() == 1 || waiting_.size() == kBatch) wake_.notify_one();
  }

 private:
  [[nodiscard]] bool past_the_end() {
    const std::scoped_lock lock(mutex_);
    return stop_ && Clock::now() >= give_up_at_;
  }

  void run() {
    for (std::vector<RequestSpan> batch; take(batch);) {
      if (!send(otlp_json(batch))) lost(batch.size());
      batch.clear();
    }
  }

  /// False: it is time to end.
  [[nodiscard]] bool take(std::vector<RequestSpan>& batch) {
    std::unique_lock lock(mutex_);
    wake_.wait(lock, [this] { return stop_ || !waiting_.empty(); });
    if (!stop_) wake_.wait_for(lock, kGather, [this] { return stop_ || waiting_.size() >= kBatch; });
    if (waiting_.empty() || (stop_ && Clock::now() >= give_up_at_)) return false;
    const auto end = waiting_.begin() + static_cast<std::ptrdiff_t>(std::min(waiting_.size(), kBatch));
    batch.assign(std::make_move_iterator(waiting_.begin()), std::make_move_iterator(end));
    waiting_.erase(waiting_.begin(), end);
    return true;
  }

  [[nodiscard]] bool send(std::string body) {
    Collected answer;
    try {
      http_.start({.url = endpoint_,
                   .headers = {"Content-Type: application/json"},
                   .body = std::move(body),
                   .timeout_seconds = kSendTimeoutSeconds},
                  answer);
    } catch (const Error& error) {
      fault_ = error.message();
      return false;
    }
    while (!answer.end) {
      (void)http_.turn(Clock::now() + kLookForEnd);
      if (past_the_end()) http_.cancel(answer);
    }
    const client::HttpEnd& end = *answer.end;
    if (end.error.empty() && end.status >= 200 && end.status < 300) {
      warned_ = false;
      return true;
    }
    fault_ = end.error.empty() ? cat("it answers with HTTP ", end.status) : end.error;
    return false;
  }

  void lost(size_t spans) {
    int64_t dropped = 0;
    {
      const std::scoped_lock lock(mutex_);
      dropped = std::exchange(dropped_, 0);
    }
    if (std::exchange(warned_, true)) return;
    log_warn("traces: {} spans are lost, {} takes none: {}; no further warning until it does",
             dropped + static_cast<int64_t>(spans), printable(endpoint_), fault_);
  }

  const std::string endpoint_;
  client::HttpClient http_{{.connect_timeout_seconds = kConnectTimeoutSeconds}};  // of the thread
  std::string fault_;                                                             // of the thread
  bool warned_ = false;                                                           // of the thread

  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<RequestSpan> waiting_;
  int64_t dropped_ = 0;
  bool stop_ = false;
  Clock::time_point give_up_at_{};
  std::thread thread_;
};

TraceExporter::TraceExporter(const std::string& endpoint) : impl_(std::make_unique<Impl>(endpoint)) {}
TraceExporter::~TraceExporter() = default;
void TraceExporter::add(RequestSpan span) { impl_->add(std::move(span)); }

}  // namespace headrace::server
