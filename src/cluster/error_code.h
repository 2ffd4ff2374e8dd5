#pragma once

#include <optional>
#include <string_view>

#include "base/error.h"

namespace headrace::cluster {

/// The code of that name (error_code_name).
[[nodiscard]] std::optional<ErrorCode> find_error_code(std::string_view name) noexcept;
/// The code of that number; nullopt for none. Numbers are the order of ErrorCode, part of the protocol.
[[nodiscard]] std::optional<ErrorCode> error_code_of(unsigned number) noexcept;

}  // namespace headrace::cluster
