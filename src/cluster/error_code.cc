#include "cluster/error_code.h"

namespace headrace::cluster {
namespace {

constexpr auto kLast = static_cast<unsigned>(ErrorCode::kInternal);

}  // namespace

std::optional<ErrorCode> find_error_code(std::string_view name) noexcept {
  for (unsigned i = 0; i <= kLast; ++i)
    if (error_code_name(static_cast<ErrorCode>(i)) == name) return static_cast<ErrorCode>(i);
  return std::nullopt;
}

std::optional<ErrorCode> error_code_of(unsigned number) noexcept {
  if (number > kLast) return std::nullopt;
  return static_cast<ErrorCode>(number);
}

}  // namespace headrace::cluster
