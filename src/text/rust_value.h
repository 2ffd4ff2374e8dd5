#pragma once

#include <string>
#include <string_view>

#include "text/rust_ffi.h"

namespace headrace {

/// `text` as the Rust side borrows it.
[[nodiscard]] inline HrSlice slice_of(std::string_view text) noexcept {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

[[nodiscard]] inline std::string_view view_of(HrSlice slice) noexcept {
  return {reinterpret_cast<const char*>(slice.data), slice.len};
}

/// Takes the bytes and frees the buffer.
[[nodiscard]] inline std::string take_string(HrBuffer buffer) {
  std::string text(reinterpret_cast<const char*>(buffer.data), buffer.len);
  hr_buffer_free(buffer);
  return text;
}

}  // namespace headrace
