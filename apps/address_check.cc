#include "apps/address_check.h"

#include <algorithm>

#include "base/error.h"
#include "cluster/named_error.h"
#include "cluster/tcp_socket.h"

namespace headrace {

void check_listen_address(std::string_view shown_as, const std::string& address) {
  (void)cluster::value_or_throw(cluster::parse_address(address), shown_as);
}

void check_peer_address(std::string_view shown_as, const std::string& address) {
  const cluster::Address parts = cluster::value_or_throw(cluster::parse_address(address), shown_as);
  const auto fail = [&](std::string_view what) {
    throw Error(ErrorCode::kInvalidArgument, cat(shown_as, ": ", printable(address), ": ", what));
  };
  if (std::ranges::all_of(parts.port, [](char digit) { return digit == '0'; })) {
    fail("nobody can be called at port 0; give the port that is listened at there");
  }
  if (cluster::is_any_address(address)) {
    fail("this stands for all addresses of a machine, of which others can call none; give the one that they reach");
  }
}

}  // namespace headrace
