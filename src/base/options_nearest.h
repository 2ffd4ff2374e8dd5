#pragma once

#include <span>
#include <string_view>

namespace headrace {

/// Steps that turn one text into the other: insert, delete or change a byte, or swap two neighbours (optimal string
/// alignment distance).
[[nodiscard]] size_t edit_distance(std::string_view a, std::string_view b);

/// The name that `typed` was probably meant to be: one that begins with it, else the one with the fewest edits, the
/// first listed among equals. Empty where nothing is near (more than half of the letters would change).
[[nodiscard]] std::string_view nearest_name(std::string_view typed, std::span<const std::string_view> names);

}  // namespace headrace
