#include "server/endpoints/endpoints.h"

namespace headrace::server {
namespace {

constexpr Route kRoutes[] = {
    {"GET", "/livez", Access::kOpen, false, live},
    {"GET", "/ping", Access::kOpen, false, ready},
    {"GET", "/readyz", Access::kOpen, false, ready},
    {"GET", "/health", Access::kOpen, false, ready},
    {"GET", "/", Access::kUser, false, page, true},
    {"GET", "/page/*", Access::kUser, false, page, true},
    {"GET", "/metrics", Access::kMetrics, false, metrics},
    {"GET", "/version", Access::kUser, false, version},
    {"GET", "/v1/models", Access::kUser, true, list_models},
    {"GET", "/v1/models/*", Access::kUser, true, show_model},
    {"GET", "/v1/cluster", Access::kUser, true, show_cluster},
    {"POST", "/tokenize", Access::kUser, true, tokenize},
    {"POST", "/detokenize", Access::kUser, true, detokenize},
    {"POST", "/v1/chat/completions", Access::kUser, true, chat_completions},
    {"POST", "/chat/completions", Access::kUser, true, chat_completions},
    {"POST", "/v1/completions", Access::kUser, true, completions},
    {"POST", "/completions", Access::kUser, true, completions},
};

}  // namespace

std::span<const Route> all_routes() noexcept { return kRoutes; }

}  // namespace headrace::server
