#include "files/hub/hub_client.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>
#include <utility>

#include "base/error.h"
#include "files/json_file.h"

namespace headrace {
namespace {

using Json = nlohmann::json;

constexpr int32_t kMaxTries = 5;
constexpr int64_t kMaxRetryAfterSeconds = 60;
constexpr int32_t kMaxRedirects = 8;
constexpr size_t kMaxTextBytes = 64u << 20;  // of a listing
constexpr auto kFirstPause = std::chrono::milliseconds(500);

int64_t number_of(std::string_view text) {
  int64_t value = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() ? value : -1;
}

bool is_redirect(int32_t status) {
  return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

/// W/"abc" -> abc. Empty for what cannot be the name of a file.
std::string plain_etag(std::string_view text) {
  if (text.starts_with("W/")) text.remove_prefix(2);
  if (text.size() >= 2 && text.front() == '"' && text.back() == '"') text = text.substr(1, text.size() - 2);
  constexpr std::string_view kPlain = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_";
  return text.size() <= 128 && text.find_first_not_of(kPlain) == text.npos ? std::string(text) : std::string();
}

const HttpReceiver kIgnoreBody = [](const HttpResponse&, std::string_view) { return true; };

}  // namespace

bool may_pass(const HttpResponse& r) noexcept {
  if (r.outcome != HttpOutcome::kAnswered) return r.outcome == HttpOutcome::kBroken;
  return r.status == 408 || r.status == 429 || r.status == 500 || (r.status >= 502 && r.status <= 504);
}

bool Backoff::wait(const HttpResponse& response) {
  if (++tries_ >= kMaxTries) return false;
  std::chrono::milliseconds pause = kFirstPause * (1 << (tries_ - 1));
  const int64_t asked = number_of(response.header("retry-after"));
  if (asked > kMaxRetryAfterSeconds) return false;
  if (asked > 0) pause = std::max<std::chrono::milliseconds>(pause, std::chrono::seconds(asked));
  std::this_thread::sleep_for(pause);
  return true;
}

HubClient::HubClient(const HubSettings& settings, const HubName& name)
    : settings_(settings),
      name_(name),
      http_({.stall_timeout = settings.stall_timeout}),
      origin_(origin_of(settings.endpoint)) {}

std::string HubClient::file_url(const std::string& commit, const std::string& path) const {
  return cat(settings_.endpoint, "/", name_.repo, "/resolve/", commit, "/", url_encode(path, true));
}

HttpResponse HubClient::follow(HttpRequest request, const HttpReceiver& receiver) {
  const HttpReceiver only_content = [&](const HttpResponse& response, std::string_view piece) {
    return response.status != 200 && response.status != 206 ? true : receiver(response, piece);
  };
  std::map<std::string, std::string> linked;  // x-linked-...: what an answer says of the file behind it
  for (int32_t hop = 0;; ++hop) {
    const std::string origin = origin_of(request.url);
    request.token = origin == origin_ ? settings_.token : "";
    last_url_ = request.url;
    HttpResponse response = http_.send(request, only_content);
    if (request.head) {
      for (const char* header : {"x-linked-etag", "x-linked-size"}) {
        if (const std::string& value = response.header(header); !value.empty()) linked.emplace(header, value);
      }
      response.headers.insert(linked.begin(), linked.end());
    }
    if (response.outcome != HttpOutcome::kAnswered || !is_redirect(response.status)) return response;
    const std::string next = resolve_url(request.url, response.header("location"));
    const std::string next_origin = origin_of(next);
    const bool is_worse = origin.starts_with("https:") && !next_origin.starts_with("https:");
    if (next_origin.empty() || is_worse || hop == kMaxRedirects) {
      throw LoadError(name_.argument,
                      cat(origin, " redirects ", is_worse ? "from https to http" : "to nowhere",
                          "; this is no fault of yours: try later, or check HF_ENDPOINT"),
                      ErrorCode::kUnavailable);
    }
    // Elsewhere there is only content: what the hub says of the file stands in this answer.
    if (request.head && next_origin != origin_) return response;
    request.url = next;
  }
}

HttpResponse HubClient::get_text(const std::string& url, std::string& body) {
  for (Backoff backoff;;) {
    body.clear();
    HttpResponse response = follow({.url = url}, [&](const HttpResponse&, std::string_view piece) {
      body += piece;
      return body.size() <= kMaxTextBytes;
    });
    if (!may_pass(response) || !backoff.wait(response)) return response;
  }
}

HubListing HubClient::list() {
  std::string body;
  const HttpResponse response = get_text(
      cat(settings_.endpoint, "/api/models/", name_.repo, "/revision/", url_encode(name_.revision, false)), body);
  if (response.outcome != HttpOutcome::kAnswered || response.status != 200) fail(response, name_.revision);
  const auto refuse = [&](std::string_view what) {
    throw LoadError(name_.argument, cat("the answer of ", origin_, " ", what, "; check HF_ENDPOINT"),
                    ErrorCode::kUnavailable);
  };
  Json json;
  try {
    json = parse_json("listing", body);
  } catch (const Error&) {
    refuse("is no JSON");
  }
  const auto text_in = [](const Json& object, const char* key) {
    const auto found = object.is_object() ? object.find(key) : object.end();
    return object.is_object() && found != object.end() && found->is_string() ? found->get<std::string>()
                                                                             : std::string();
  };
  HubListing listing{.commit = text_in(json, "sha"), .files = {}};
  if (!is_commit(listing.commit)) refuse("names no commit");
  const auto siblings = json.find("siblings");
  if (siblings == json.end() || !siblings->is_array()) refuse("lists no files");
  std::set<std::string> files;
  for (const Json& sibling : *siblings) {
    if (std::string path = text_in(sibling, "rfilename"); is_inside_path(path)) files.insert(std::move(path));
  }
  listing.files.assign(files.begin(), files.end());
  return listing;
}

HubFile HubClient::describe(const std::string& commit, const std::string& path) {
  HttpResponse response;
  for (Backoff backoff;;) {
    response = follow({.url = file_url(commit, path), .head = true}, kIgnoreBody);
    if (!may_pass(response) || !backoff.wait(response)) break;
  }
  if (response.outcome != HttpOutcome::kAnswered || (response.status != 200 && !is_redirect(response.status))) {
    fail(response, path);
  }
  // An answer that redirects has a length and perhaps an ETag of its own.
  const auto header = [&](const char* linked, const char* own) {
    const std::string& value = response.header(linked);
    return value.empty() && response.status == 200 ? response.header(own) : value;
  };
  HubFile file{.path = path,
               .etag = plain_etag(header("x-linked-etag", "etag")),
               .bytes = number_of(header("x-linked-size", "content-length"))};
  if (file.etag.empty() || file.bytes < 0) {
    throw LoadError(name_.argument, cat(origin_, " does not say the digest and size of ", path, "; check HF_ENDPOINT"),
                    ErrorCode::kUnavailable);
  }
  return file;
}

HttpResponse HubClient::download(const std::string& commit, const std::string& path, int64_t offset,
                                 const HttpReceiver& receiver) {
  return follow({.url = file_url(commit, path), .offset = offset}, receiver);
}

void HubClient::fail_unknown_repo() {
  std::string near, body;
  const std::string model = name_.repo.substr(name_.repo.find('/') + 1);
  const HttpResponse found =
      follow({.url = cat(settings_.endpoint, "/api/models?limit=3&search=", url_encode(model, false))},
             [&](const HttpResponse&, std::string_view piece) {
               body += piece;
               return body.size() <= kMaxTextBytes;
             });
  if (found.outcome == HttpOutcome::kAnswered && found.status == 200) {
    const Json json = Json::parse(body, nullptr, /*allow_exceptions=*/false);
    for (const Json& row : json.is_array() ? json : Json::array()) {
      const auto id = row.is_object() ? row.find("id") : row.end();
      if (row.is_object() && id != row.end() && id->is_string()) {
        near += cat(near.empty() ? "" : ", ", printable(id->get<std::string>()));
      }
    }
  }
  throw LoadError(
      name_.argument,
      cat("no such model on ", origin_,
          ", or a private one: ", near.empty() ? "check the name" : cat("check the name (there are ", near, ")"),
          settings_.token.empty() ? ", or set HF_TOKEN to a token that may read it" : ", or that HF_TOKEN may read it"),
      ErrorCode::kNotFound);
}

void HubClient::fail(const HttpResponse& response, const std::string& what) {
  const std::string& argument = name_.argument;
  const std::string origin = origin_of(last_url_);
  if (response.outcome == HttpOutcome::kUnreachable) {
    throw LoadError(
        argument,
        cat("cannot reach ", origin, " (", response.fault, "); check the network, https_proxy and HF_ENDPOINT"),
        ErrorCode::kUnavailable);
  }
  if (response.outcome != HttpOutcome::kAnswered) {
    throw LoadError(argument,
                    cat("the connection to ", origin, " broke at ", what, " (", response.fault,
                        "), also when tried again; run it again to go on from there"),
                    ErrorCode::kUnavailable);
  }
  const int32_t status = response.status;
  const std::string& code = response.header("x-error-code");
  if (code == "GatedRepo") {
    throw LoadError(
        argument,
        cat("its owner wants terms accepted: do that at ", settings_.endpoint, "/", name_.repo, ", then ",
            settings_.token.empty() ? cat("set HF_TOKEN to a token of ", settings_.endpoint, "/settings/tokens")
                                    : "run it again; the token sent has no access yet"),
        ErrorCode::kInvalidArgument);
  }
  if (code == "RevisionNotFound") {
    throw LoadError(argument, cat("has no branch, tag or commit ", what, "; without @REVISION it is main"),
                    ErrorCode::kNotFound);
  }
  if (code == "EntryNotFound") throw LoadError(argument, cat("has no file ", what), ErrorCode::kNotFound);
  if (code == "RepoNotFound" || (code.empty() && status == 404 && origin == origin_)) fail_unknown_repo();
  if (origin == origin_ && (status == 401 || status == 403)) {
    throw LoadError(argument,
                    cat(origin, " refuses ", what, " (", status, "); ",
                        settings_.token.empty() ? "set HF_TOKEN to a token that may read it"
                                                : "check that the token in HF_TOKEN is valid and may read it"),
                    ErrorCode::kInvalidArgument);
  }
  throw LoadError(argument,
                  cat(origin, " answers ", status, " for ", what,
                      may_pass(response) ? ", also when tried again; try later" : "; try later, or check HF_ENDPOINT"),
                  ErrorCode::kUnavailable);
}

}  // namespace headrace
