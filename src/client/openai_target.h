#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "client/http_client.h"

namespace headrace::client {

/// How the prefix cache of the server is kept from knowing the prompts of an earlier run.
enum class CacheState {
  kWarm,      ///< it is not
  kColdSalt,  ///< by the request field `cache_salt`, unique for each run
  kColdText,  ///< by a text, unique for each run, before every prompt
};
[[nodiscard]] std::string_view cache_state_name(CacheState state) noexcept;

/// The server and what each request to it has in common.
struct OpenAiTarget {
  std::string base_url = "http://127.0.0.1:8000";
  std::string endpoint = "/v1/completions";  ///< one that ends in chat/completions takes messages
  std::string model;
  std::vector<std::string> headers;  ///< beside those for JSON and the key
  std::string api_key;
  bool ignore_eos = false;
  std::optional<double> temperature, top_p;
  std::optional<int64_t> top_k;
  std::string extra_body;  ///< a JSON object whose members are added to each request; may be empty
  double timeout_seconds = 3600;
};

[[nodiscard]] bool is_chat(const OpenAiTarget& target) noexcept;

/// A streamed request for at most `max_tokens` tokens; `cache_salt` may be empty.
[[nodiscard]] std::string request_body(const OpenAiTarget& target, std::string_view prompt, int64_t max_tokens,
                                       std::string_view cache_salt);

/// To the endpoint, or to `path` of the same server. Without a body a GET.
[[nodiscard]] HttpRequest http_request(const OpenAiTarget& target, std::string body);
[[nodiscard]] HttpRequest http_request(const OpenAiTarget& target, std::string_view path, std::string body);

/// The first model that the server lists. Throws Error where it lists none.
[[nodiscard]] std::string first_model(HttpClient& client, const OpenAiTarget& target);

/// "status 503: overloaded", of an answer that is none.
[[nodiscard]] std::string failure_text(const HttpAnswer& answer);

}  // namespace headrace::client
