#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/byte_order.h"

namespace headrace {

template <class T>
void append_le(std::vector<std::byte>& out, T value) {
  out.resize(out.size() + sizeof(T));
  store_le(out.data() + out.size() - sizeof(T), value);
}

/// A count as ByteReader::take_count reads it.
inline void append_count(std::vector<std::byte>& out, size_t n) { append_le(out, static_cast<uint32_t>(n)); }

/// Takes little-endian values from the front of bytes that nobody vouches for; once it came to the end it gives zeros
/// and ok() is false.
class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> bytes) : rest_(bytes) {}
  [[nodiscard]] bool ok() const noexcept { return ok_; }
  [[nodiscard]] size_t left() const noexcept { return rest_.size(); }

  template <class T>
  T take() noexcept {
    const std::span<const std::byte> bytes = take_bytes(sizeof(T));
    return bytes.empty() ? T{} : load_le<T>(bytes.data());
  }

  /// The next `n` bytes; none and not ok() where there are fewer.
  std::span<const std::byte> take_bytes(size_t n) noexcept {
    if (rest_.size() < n) return end();
    const std::span<const std::byte> bytes = rest_.first(n);
    rest_ = rest_.subspan(n);
    return bytes;
  }

  /// A count of items of at least `item_bytes` each; 0 and not ok() where the bytes cannot hold them.
  size_t take_count(size_t item_bytes) noexcept {
    const uint32_t n = take<uint32_t>();
    if (n <= rest_.size() / item_bytes) return n;
    end();
    return 0;
  }

 private:
  std::span<const std::byte> end() noexcept {
    ok_ = false;
    rest_ = {};
    return {};
  }

  std::span<const std::byte> rest_;
  bool ok_ = true;
};

}  // namespace headrace
