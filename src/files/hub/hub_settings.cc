#include "files/hub/hub_settings.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdlib>

#include "base/ascii_text.h"
#include "base/error.h"
#include "files/hub/http.h"
#include "files/json_file.h"

namespace headrace {
namespace {

namespace fs = std::filesystem;

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

/// With "~" as the home folder.
fs::path folder_variable(const char* name) {
  const std::string value = variable(name);
  if (value == "~" || value.starts_with("~/"))
    return fs::path(variable("HOME")) / value.substr(std::min<size_t>(2, value.size()));
  return value;
}

fs::path hub_home() {
  if (const fs::path home = folder_variable("HF_HOME"); !home.empty()) return home;
  if (const fs::path cache = folder_variable("XDG_CACHE_HOME"); !cache.empty()) return cache / "huggingface";
  const std::string home = variable("HOME");
  return home.empty() ? fs::path() : fs::path(home) / ".cache/huggingface";
}

bool is_on(std::string value) {
  std::transform(value.begin(), value.end(), value.begin(),
                 [](char c) { return static_cast<char>(std::toupper(static_cast<unsigned char>(c))); });
  return value == "1" || value == "TRUE" || value == "YES" || value == "ON";
}

/// `source` is named in errors; the token itself never is.
std::string checked_token(const std::string& text, const std::string& source) {
  std::string token(ascii_trimmed(text));
  for (const char c : token) {
    if (c <= 0x20 || c >= 0x7f) {
      throw Error(ErrorCode::kInvalidArgument,
                  cat(source, ": is no token: it has a blank or a control character in it"));
    }
  }
  return token;
}

std::string find_token(const fs::path& home) {
  for (const char* name : {"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"}) {
    if (std::string token = checked_token(variable(name), name); !token.empty()) return token;
  }
  fs::path file = folder_variable("HF_TOKEN_PATH");
  if (file.empty()) file = home.empty() ? home : home / "token";
  std::error_code ignored;
  if (file.empty() || !fs::is_regular_file(file, ignored)) return {};
  constexpr size_t kMaxBytes = 4096;
  return checked_token(read_text_file(file.string(), kMaxBytes), file.string());
}

std::chrono::seconds timeout_variable(const char* name, std::chrono::seconds usual) {
  const std::string text = variable(name);
  if (text.empty()) return usual;
  int64_t seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (error != std::errc() || end != text.data() + text.size() || seconds < 1 || seconds > 3600) {
    throw Error(ErrorCode::kInvalidArgument, cat(name, "=", printable(text), ": expected seconds from 1 to 3600"));
  }
  return std::chrono::seconds(seconds);
}

}  // namespace

HubSettings hub_settings_from_environment() {
  HubSettings settings;
  if (std::string endpoint(ascii_trimmed(variable("HF_ENDPOINT"))); !endpoint.empty()) {
    endpoint.erase(endpoint.find_last_not_of('/') + 1);
    if (origin_of(endpoint).empty() || endpoint.find_first_of("?#") != std::string::npos) {
      throw Error(ErrorCode::kInvalidArgument,
                  cat("HF_ENDPOINT=", printable(endpoint), ": expected an address such as ", settings.endpoint));
    }
    settings.endpoint = endpoint;
  }
  const fs::path home = hub_home();
  settings.token = find_token(home);
  settings.offline = is_on(variable("HF_HUB_OFFLINE"));
  settings.stall_timeout = timeout_variable("HF_HUB_DOWNLOAD_TIMEOUT", settings.stall_timeout);
  settings.cache = folder_variable("HF_HUB_CACHE");
  if (settings.cache.empty()) {
    if (home.empty()) throw Error(ErrorCode::kInvalidArgument, "no folder for the hub's files: set HF_HOME");
    settings.cache = home / "hub";
  }
  return settings;
}

}  // namespace headrace
