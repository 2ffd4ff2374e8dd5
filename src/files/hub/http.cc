#include "files/hub/http.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <exception>

#include "base/ascii_text.h"
#include "base/error.h"
#include "files/curl_handles.h"

namespace headrace {
namespace {

constexpr size_t kMaxHeaders = 200;  // libcurl bounds each one's length

using CurlUrl = std::unique_ptr<CURLU, CurlDeleter>;

/// What one transfer's callbacks share.
struct Transfer {
  HttpResponse response;
  const HttpReceiver* receiver = nullptr;
  bool stopped = false;
  std::exception_ptr thrown = nullptr;  // an exception may not pass through libcurl
};

size_t take_header(char* data, size_t, size_t size, void* context) noexcept {
  auto& transfer = *static_cast<Transfer*>(context);
  const std::string_view line(data, size);
  try {
    if (line.starts_with("HTTP/")) {  // of an answer that follows an interim one
      transfer.response.headers.clear();
      return size;
    }
    const size_t colon = line.find(':');
    if (colon == line.npos) return size;
    if (transfer.response.headers.size() >= kMaxHeaders) return 0;
    transfer.response.headers[ascii_lower(ascii_trimmed(line.substr(0, colon)))] =
        ascii_trimmed(line.substr(colon + 1));
    return size;
  } catch (...) {
    transfer.thrown = std::current_exception();
    return 0;
  }
}

std::string url_part(CURLU* url, CURLUPart part, unsigned flags = 0) {
  char* text = nullptr;
  if (curl_url_get(url, part, &text, flags) != CURLUE_OK || text == nullptr) return {};
  std::string out = text;
  curl_free(text);
  return out;
}

CurlUrl parse_url(const std::string& text) {
  CurlUrl url(curl_url());
  if (!url || curl_url_set(url.get(), CURLUPART_URL, text.c_str(), 0) != CURLUE_OK) return nullptr;
  return url;
}

HttpOutcome outcome_of(CURL* handle, CURLcode code) {
  switch (code) {
    case CURLE_OPERATION_TIMEDOUT: {
      curl_off_t sent_at = 0;  // 0: it never came to sending
      curl_easy_getinfo(handle, CURLINFO_PRETRANSFER_TIME_T, &sent_at);
      return sent_at == 0 ? HttpOutcome::kUnreachable : HttpOutcome::kBroken;
    }
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_CONNECT:
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_URL_MALFORMAT:
    case CURLE_UNSUPPORTED_PROTOCOL:
      return HttpOutcome::kUnreachable;
    default:
      return HttpOutcome::kBroken;
  }
}

}  // namespace

class HttpClient::Impl {
 public:
  explicit Impl(HttpOptions options) : options_(options) {
    start_libcurl();
    handle_.reset(curl_easy_init());
    if (!handle_) throw Error(ErrorCode::kInternal, "libcurl cannot be started");
  }

  HttpResponse send(const HttpRequest& request, const HttpReceiver& receiver) {
    Transfer transfer;
    transfer.receiver = &receiver;
    char fault[CURL_ERROR_SIZE] = "";
    curl_easy_reset(handle_.get());  // keeps connections
    set(CURLOPT_ERRORBUFFER, &fault[0]);
    set(CURLOPT_URL, request.url.c_str());
    set(CURLOPT_NOBODY, request.head ? 1L : 0L);
    set(CURLOPT_PROTOCOLS_STR, "http,https");
    set(CURLOPT_FOLLOWLOCATION, 0L);
    set(CURLOPT_NOSIGNAL, 1L);  // signals belong to the program
    set(CURLOPT_CONNECTTIMEOUT, static_cast<long>(options_.connect_timeout.count()));
    set(CURLOPT_LOW_SPEED_LIMIT, 1L);
    set(CURLOPT_LOW_SPEED_TIME, static_cast<long>(options_.stall_timeout.count()));
    set(CURLOPT_BUFFERSIZE, 256L << 10);
    set(CURLOPT_USERAGENT, "headrace");
    set(CURLOPT_HEADERFUNCTION, &take_header);
    set(CURLOPT_HEADERDATA, &transfer);
    set(CURLOPT_WRITEFUNCTION, &Impl::take_body);
    set(CURLOPT_WRITEDATA, this);
    for (const char* name : {"SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"}) {
      if (const char* path = std::getenv(name); path != nullptr && *path != '\0') set(CURLOPT_CAINFO, path);
    }
    curl_slist* raw = curl_slist_append(nullptr, "Accept-Encoding: identity");  // else sizes are those of gzip
    if (!request.token.empty()) raw = curl_slist_append(raw, cat("Authorization: Bearer ", request.token).c_str());
    const std::unique_ptr<curl_slist, CurlDeleter> headers(raw);
    set(CURLOPT_HTTPHEADER, headers.get());
    if (request.offset > 0) set(CURLOPT_RANGE, cat(request.offset, "-").c_str());

    transfer_ = &transfer;
    const CURLcode code = curl_easy_perform(handle_.get());
    transfer_ = nullptr;
    curl_easy_setopt(handle_.get(), CURLOPT_ERRORBUFFER, nullptr);  // it lives on this stack
    if (transfer.thrown) std::rethrow_exception(transfer.thrown);
    HttpResponse response = std::move(transfer.response);
    response.status = status();
    if (code == CURLE_OK) {
      response.outcome = HttpOutcome::kAnswered;
    } else {
      response.outcome = transfer.stopped ? HttpOutcome::kStopped : outcome_of(handle_.get(), code);
      response.fault = fault[0] != '\0' ? &fault[0] : curl_easy_strerror(code);
    }
    return response;
  }

 private:
  template <class T>
  void set(CURLoption option, T value) {
    const CURLcode code = curl_easy_setopt(handle_.get(), option, value);
    if (code != CURLE_OK) throw Error(ErrorCode::kInternal, cat("libcurl: ", curl_easy_strerror(code)));
  }

  int32_t status() {
    long value = 0;
    curl_easy_getinfo(handle_.get(), CURLINFO_RESPONSE_CODE, &value);
    return static_cast<int32_t>(value);
  }

  static size_t take_body(char* data, size_t, size_t size, void* context) noexcept {
    auto& self = *static_cast<Impl*>(context);
    Transfer& transfer = *self.transfer_;
    try {
      transfer.response.status = self.status();
      transfer.stopped = !(*transfer.receiver)(transfer.response, {data, size});
    } catch (...) {
      transfer.thrown = std::current_exception();
    }
    return transfer.stopped || transfer.thrown ? 0 : size;
  }

  HttpOptions options_;
  std::unique_ptr<CURL, CurlDeleter> handle_;
  Transfer* transfer_ = nullptr;
};

const std::string& HttpResponse::header(const std::string& lower_case_name) const {
  static const std::string kNone;
  const auto found = headers.find(lower_case_name);
  return found == headers.end() ? kNone : found->second;
}

HttpClient::HttpClient(HttpOptions options) : impl_(std::make_unique<Impl>(options)) {}
HttpClient::~HttpClient() = default;

HttpResponse HttpClient::send(const HttpRequest& request, const HttpReceiver& receiver) {
  return impl_->send(request, receiver);
}

std::string origin_of(const std::string& url) {
  const CurlUrl parts = parse_url(url);
  if (!parts || !url_part(parts.get(), CURLUPART_USER).empty()) return {};
  const std::string scheme = ascii_lower(url_part(parts.get(), CURLUPART_SCHEME));
  if (scheme != "http" && scheme != "https") return {};
  return cat(scheme, "://", ascii_lower(url_part(parts.get(), CURLUPART_HOST)), ":",
             url_part(parts.get(), CURLUPART_PORT, CURLU_DEFAULT_PORT));
}

std::string resolve_url(const std::string& base, const std::string& location) {
  const CurlUrl url = parse_url(base);
  if (!url || location.empty() || curl_url_set(url.get(), CURLUPART_URL, location.c_str(), 0) != CURLUE_OK) return {};
  return url_part(url.get(), CURLUPART_URL);
}

std::string url_encode(std::string_view text, bool keep_slashes) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain =
        byte < 128 && (std::isalnum(byte) != 0 || std::string_view("-._~").find(c) != std::string_view::npos);
    if (plain || (c == '/' && keep_slashes)) {
      out += c;
    } else {
      out += cat('%', "0123456789ABCDEF"[byte >> 4], "0123456789ABCDEF"[byte & 15]);
    }
  }
  return out;
}

}  // namespace headrace
