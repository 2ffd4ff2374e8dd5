#include "server/http_message.h"

#include <algorithm>

namespace headrace::server {

std::string_view HttpRequest::header(std::string_view name) const noexcept {
  const auto found = std::find_if(headers.begin(), headers.end(), [&](const Header& h) { return h.name == name; });
  return found == headers.end() ? std::string_view() : std::string_view(found->value);
}

}  // namespace headrace::server
