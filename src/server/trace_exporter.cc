#include "server/trace_exporter.h"

#include <curl/curl.h>

#include <algorithm>
#include <condition_variable>
#include <iterator>
#include <mutex>
#include <thread>
#include <utility>

#include "base/cat.h"
#include "base/error.h"
#include "base/log.h"
#include "server/otlp_json.h"

namespace headrace::server {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kMaxWaiting = 2048;
constexpr size_t kBatch = 128;
constexpr std::chrono::milliseconds kGather{500};  // spans of this time go together
constexpr long kConnectTimeoutMs = 1000;
constexpr long kSendTimeoutMs = 5000;
constexpr std::chrono::seconds kLastWords{2};

struct CurlDeleter {
  void operator()(CURL* handle) const noexcept { curl_easy_cleanup(handle); }
  void operator()(CURLU* url) const noexcept { curl_url_cleanup(url); }
  void operator()(curl_slist* list) const noexcept { curl_slist_free_all(list); }
};

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

size_t ignore_answer(char*, size_t size, size_t count, void*) { return size * count; }

}  // namespace

class TraceExporter::Impl {
 public:
  explicit Impl(const std::string& endpoint) : endpoint_(endpoint) {
    check_endpoint(endpoint);
    if (!curl_ || !headers_) throw Error(ErrorCode::kOutOfMemory, "the trace exporter cannot begin");
    set_up();
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
  void set_up() {
    CURL* const curl = curl_.get();
    curl_easy_setopt(curl, CURLOPT_URL, endpoint_.c_str());
    curl_easy_setopt(curl, CURLOPT_PROXY, "");  // a collector stands beside the server, not behind a way out
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers_.get());
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, kConnectTimeoutMs);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, kSendTimeoutMs);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, &ignore_answer);
    curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
    curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, &Impl::on_progress);
    curl_easy_setopt(curl, CURLOPT_XFERINFODATA, this);
  }

  static int on_progress(void* self, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
    return static_cast<Impl*>(self)->past_the_end() ? 1 : 0;
  }

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

  [[nodiscard]] bool send(const std::string& body) {
    CURL* const curl = curl_.get();
    curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(body.size()));
    curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body.c_str());
    const CURLcode code = curl_easy_perform(curl);
    long status = 0;
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    if (code == CURLE_OK && status >= 200 && status < 300) {
      warned_ = false;
      return true;
    }
    fault_ = code == CURLE_OK ? cat("it answers with HTTP ", status) : std::string(curl_easy_strerror(code));
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
  const std::unique_ptr<CURL, CurlDeleter> curl_{curl_easy_init()};
  const std::unique_ptr<curl_slist, CurlDeleter> headers_{curl_slist_append(nullptr, "Content-Type: application/json")};
  std::string fault_;    // of the thread
  bool warned_ = false;  // of the thread

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
