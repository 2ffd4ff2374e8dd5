#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace headrace::cluster {

/// Whose place a newcomer gets where none is free, of `peers` ("10.0.0.2:8100", the oldest first; not empty) that have
/// not proven yet who they are: the oldest of those at the address that has the most places. So whoever fills all of
/// them from one machine only loses its own, and from many it must be faster than a handshake takes.
[[nodiscard]] size_t place_for_newcomer(std::span<const std::string_view> peers);

}  // namespace headrace::cluster
