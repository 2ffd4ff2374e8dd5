#pragma once

#include <string>
#include <string_view>

namespace headrace {

// Both throw Error(kInvalidArgument), one line that begins with `shown_as`: "--join".

/// An address to listen at: "host:port", where port 0 is any free one.
void check_listen_address(std::string_view shown_as, const std::string& address);
/// An address that another machine calls: it has a port and names one machine.
void check_peer_address(std::string_view shown_as, const std::string& address);

}  // namespace headrace
