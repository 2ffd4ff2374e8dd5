#pragma once

#include <concepts>
#include <initializer_list>
#include <string>
#include <string_view>

namespace headrace {

/// One part of a cat(): text as it is, numbers in decimal (floats in the shortest form that reads back the same).
class CatPiece {
 public:
  CatPiece(std::string_view text) noexcept : text_(text) {}           // NOLINT: implicit on purpose
  CatPiece(const std::string& text) noexcept : text_(text) {}         // NOLINT
  CatPiece(const char* text) noexcept : text_(text) {}                // NOLINT
  CatPiece(char c) noexcept : text_(buffer_, 1) { buffer_[0] = c; }   // NOLINT
  CatPiece(bool value) noexcept : text_(value ? "true" : "false") {}  // NOLINT
  CatPiece(double value) noexcept { write(value); }                   // NOLINT
  CatPiece(float value) noexcept { write(value); }                    // NOLINT
  template <std::signed_integral T>
  CatPiece(T value) noexcept {  // NOLINT
    write(static_cast<long long>(value));
  }
  template <std::unsigned_integral T>
  CatPiece(T value) noexcept {  // NOLINT
    write(static_cast<unsigned long long>(value));
  }
  CatPiece(const CatPiece&) = delete;
  CatPiece& operator=(const CatPiece&) = delete;

  [[nodiscard]] std::string_view text() const noexcept { return text_; }

 private:
  void write(long long value) noexcept;
  void write(unsigned long long value) noexcept;
  void write(double value) noexcept;
  void write(float value) noexcept;

  char buffer_[32];
  std::string_view text_;
};

[[nodiscard]] std::string cat_pieces(std::initializer_list<std::string_view> pieces);

/// The parts, one after the other: cat("row ", 3, " of ", n).
template <class... Parts>
[[nodiscard]] std::string cat(const Parts&... parts) {
  return cat_pieces({CatPiece(parts).text()...});
}

}  // namespace headrace
