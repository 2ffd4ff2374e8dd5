// GET / and /page/NAME: the page with a chat and a live view, for browsers.
#include <algorithm>

#include "server/endpoints/endpoints.h"
#include "server/error_reply.h"
#include "server/page/page_files.h"

namespace headrace::server {

HttpReply page(const Exchange& exchange, ServerContext&) {
  const std::string_view path = exchange.request.path;
  const std::string_view name = path == "/" ? "index.html" : path.substr(std::string_view("/page/").size());
  const std::span<const PageFile> files = page_files();
  const auto file = std::find_if(files.begin(), files.end(), [&](const PageFile& each) { return each.name == name; });
  if (file == files.end()) throw not_found("no such file of the page");
  // Nothing from elsewhere, no frames around it: what an answer of the model contains can never run.
  return {.body = std::string(file->content),
          .content_type = std::string(file->content_type),
          .headers = {{"Cache-Control", "no-cache"},
                      {"Content-Security-Policy",
                       "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
                       "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"},
                      {"X-Content-Type-Options", "nosniff"},
                      {"Referrer-Policy", "no-referrer"}}};
}

}  // namespace headrace::server
