#include "base/cat.h"

#include <charconv>

namespace headrace {

void CatPiece::write(long long value) noexcept {
  text_ = {buffer_, static_cast<size_t>(std::to_chars(buffer_, std::end(buffer_), value).ptr - buffer_)};
}
void CatPiece::write(unsigned long long value) noexcept {
  text_ = {buffer_, static_cast<size_t>(std::to_chars(buffer_, std::end(buffer_), value).ptr - buffer_)};
}
void CatPiece::write(double value) noexcept {
  text_ = {buffer_, static_cast<size_t>(std::to_chars(buffer_, std::end(buffer_), value).ptr - buffer_)};
}
void CatPiece::write(float value) noexcept {
  text_ = {buffer_, static_cast<size_t>(std::to_chars(buffer_, std::end(buffer_), value).ptr - buffer_)};
}

std::string cat_pieces(std::initializer_list<std::string_view> pieces) {
  size_t bytes = 0;
  for (const std::string_view piece : pieces) bytes += piece.size();
  std::string out;
  out.reserve(bytes);
  for (const std::string_view piece : pieces) out += piece;
  return out;
}

}  // namespace headrace
