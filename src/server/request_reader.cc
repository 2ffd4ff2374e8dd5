#include "server/request_reader.h"

#include <algorithm>
#include <boost/beast/http/basic_parser.hpp>
#include <boost/beast/http/status.hpp>

#include "base/ascii_text.h"
#include "base/cat.h"

namespace headrace::server {
namespace {

namespace beast = boost::beast;
namespace http = boost::beast::http;

// What is reserved for a body at once: a length is only a claim.
constexpr uint64_t kFirstBodyBytes = uint64_t{1} << 20;

int hex_digit(char c) noexcept {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// nullopt: a percent sign without two digits, or a byte 0.
std::optional<std::string> percent_decoded(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    if (text.size() - i < 3) return std::nullopt;
    const int byte = hex_digit(text[i + 1]) * 16 + hex_digit(text[i + 2]);
    if (hex_digit(text[i + 1]) < 0 || hex_digit(text[i + 2]) < 0 || byte == 0) return std::nullopt;
    out += static_cast<char>(byte);
    i += 2;
  }
  return out;
}

// Of "http://host/path?query", which proxies send, the part from the path on.
std::string_view without_authority(std::string_view target) noexcept {
  const size_t scheme_end = target.find("://");
  if (target.starts_with('/') || scheme_end == std::string_view::npos) return target;
  const size_t path = target.find_first_of("/?", scheme_end + 3);
  return path == std::string_view::npos ? "/" : target.substr(path);
}

}  // namespace

class RequestReader::Parser final : public http::basic_parser<true> {
 public:
  Parser(int64_t max_header_bytes, int64_t max_body_bytes)
      : max_header_bytes_(static_cast<size_t>(max_header_bytes)), max_body_bytes_(max_body_bytes) {
    header_limit(static_cast<uint32_t>(max_header_bytes));
    body_limit(static_cast<uint64_t>(max_body_bytes));
    eager(true);
  }

  size_t take_from(std::string_view input) {
    size_t taken = 0;
    // Empty lines before a request are skipped (RFC 9112, 2.2).
    while (!got_some() && input.substr(taken).starts_with("\r\n")) taken += 2;
    if (fault || is_done() || input.size() == taken || (!got_some() && input.substr(taken) == "\r")) return taken;
    beast::error_code ec;
    taken += put({input.data() + taken, input.size() - taken}, ec);
    if (ec == http::error::need_more) {
      // Limits of Beast are those of the head and the body; between chunks, and in trailers, there is ours.
      if (head_done && input.size() - taken > max_header_bytes_) {
        refuse(431, cat("the lines between the pieces of the body are longer than ", max_header_bytes_, " bytes"));
      }
    } else if (ec && !fault) {
      refuse_for(ec);
    }
    return taken;
  }

  HttpRequest request;
  std::optional<RequestFault> fault;
  bool head_done = false;
  bool http_1_1 = false;
  bool expects_continue = false;

 private:
  void refuse(int status, std::string message) { fault = RequestFault{status, std::move(message)}; }

  void refuse_for(const beast::error_code& ec) {
    if (ec == http::error::header_limit) {
      refuse(431, cat("the head of the request is longer than ", max_header_bytes_, " bytes"));
    } else if (ec == http::error::body_limit) {
      refuse(413, cat("the body of the request is longer than ", max_body_bytes_, " bytes"));
    } else {
      refuse(400, cat("malformed request: ", ec.message()));
    }
  }

  // Ends the parser's work; any error does, as `fault` says what is wrong.
  void refuse(int status, std::string message, beast::error_code& ec) {
    refuse(status, std::move(message));
    ec = http::error::bad_value;
  }

  void on_request_impl(http::verb, beast::string_view method, beast::string_view target, int version,
                       beast::error_code& ec) override {
    request.method.assign(method.data(), method.size());
    http_1_1 = version == 11;
    std::string_view rest = without_authority({target.data(), target.size()});
    rest = rest.substr(0, rest.find('#'));
    const size_t mark = rest.find('?');
    if (mark != std::string_view::npos) request.query = rest.substr(mark + 1);
    std::optional<std::string> path = percent_decoded(rest.substr(0, mark));
    if (!path) return refuse(400, "malformed request: a percent sign in the path begins no byte", ec);
    request.path = path->empty() ? "/" : std::move(*path);
  }

  void on_field_impl(http::field, beast::string_view name, beast::string_view value, beast::error_code&) override {
    if (head_done) return;  // a trailer must not pass for a header
    request.headers.push_back({ascii_lower({name.data(), name.size()}), std::string(value.data(), value.size())});
  }

  void on_header_impl(beast::error_code& ec) override {
    head_done = true;
    const auto count = [this](std::string_view name) {
      return std::count_if(request.headers.begin(), request.headers.end(),
                           [&](const Header& header) { return header.name == name; });
    };
    const auto codings = count("transfer-encoding");
    if (count("content-length") > 1 || request.header("content-length").find(',') != std::string_view::npos) {
      return refuse(400, "malformed request: more than one Content-Length", ec);
    }
    if (codings > 0 && (count("content-length") > 0 || codings > 1 || !http_1_1)) {
      return refuse(400, "malformed request: Transfer-Encoding beside another length, or in HTTP/1.0", ec);
    }
    if (codings > 0 && ascii_lower(request.header("transfer-encoding")) != "chunked") {
      return refuse(501, "of transfer codings, only chunked is understood", ec);
    }
    if (count("host") > 1 || (http_1_1 && count("host") == 0)) {
      return refuse(400, "malformed request: HTTP/1.1 has one Host header", ec);
    }
    const std::string expected = ascii_lower(request.header("expect"));
    if (!expected.empty() && expected != "100-continue") {
      return refuse(417, "the only expectation that is understood is 100-continue", ec);
    }
    expects_continue = !expected.empty() && http_1_1;
  }

  void on_body_init_impl(const boost::optional<uint64_t>& length, beast::error_code&) override {
    if (length) request.body.reserve(static_cast<size_t>(std::min(*length, kFirstBodyBytes)));
  }
  size_t on_body_impl(beast::string_view bytes, beast::error_code&) override {
    request.body.append(bytes.data(), bytes.size());
    return bytes.size();
  }
  size_t on_chunk_body_impl(uint64_t, beast::string_view bytes, beast::error_code&) override {
    request.body.append(bytes.data(), bytes.size());
    return bytes.size();
  }
  void on_chunk_header_impl(uint64_t, beast::string_view, beast::error_code&) override {}
  void on_finish_impl(beast::error_code&) override {}
  void on_response_impl(int, beast::string_view, int, beast::error_code&) override {}

  size_t max_header_bytes_;
  int64_t max_body_bytes_;
};

RequestReader::RequestReader(int64_t max_header_bytes, int64_t max_body_bytes)
    : parser_(std::make_unique<Parser>(max_header_bytes, max_body_bytes)) {}
RequestReader::~RequestReader() = default;
RequestReader::RequestReader(RequestReader&&) noexcept = default;
RequestReader& RequestReader::operator=(RequestReader&&) noexcept = default;

size_t RequestReader::put(std::string_view input) { return parser_->take_from(input); }
const std::optional<RequestFault>& RequestReader::fault() const noexcept { return parser_->fault; }
bool RequestReader::head_complete() const noexcept { return parser_->head_done; }
bool RequestReader::complete() const noexcept { return !parser_->fault && parser_->is_done(); }

bool RequestReader::waits_for_continue() const noexcept {
  return parser_->expects_continue && !parser_->is_done() && parser_->request.body.empty();
}

bool RequestReader::is_http_1_1() const noexcept { return parser_->http_1_1; }
bool RequestReader::keep_alive() const noexcept { return parser_->keep_alive(); }
HttpRequest RequestReader::take() { return std::move(parser_->request); }

std::string_view reason_phrase(int status) noexcept {
  const auto phrase = http::obsolete_reason(http::int_to_status(static_cast<unsigned>(status)));
  return http::int_to_status(static_cast<unsigned>(status)) == http::status::unknown
             ? std::string_view()
             : std::string_view(phrase.data(), phrase.size());
}

}  // namespace headrace::server
