#pragma once

#include <bit>
#include <cstddef>
#include <cstring>
#include <type_traits>

namespace headrace {

static_assert(std::endian::native == std::endian::little,
              "files and frames are little-endian; so are all our machines");

/// Reads a T from possibly unaligned little-endian bytes.
template <class T>
requires std::is_trivially_copyable_v<T>
[[nodiscard]] inline T load_le(const void* from) noexcept {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}

/// Writes a T to possibly unaligned little-endian bytes.
template <class T>
requires std::is_trivially_copyable_v<T>
inline void store_le(void* to, const T& value) noexcept { std::memcpy(to, &value, sizeof(T)); }

}  // namespace headrace
