#pragma once

#include <cstdint>
#include <type_traits>

namespace headrace {

/// A token of the vocabulary. Plain int, as every library and client has it.
using TokenId = int32_t;

enum class BlockId : int32_t {};      ///< block of a cache group, the same on every stage
enum class SequenceId : uint64_t {};  ///< one continuation of a request
enum class StepId : uint64_t {};      ///< one forward pass; stages run them in this order
enum class EpochId : uint32_t {};     ///< rises at every new placement; frames of another epoch are dropped

/// The number behind an id type.
template <class Id>
requires std::is_enum_v<Id>
[[nodiscard]] constexpr auto raw(Id id) noexcept { return static_cast<std::underlying_type_t<Id>>(id); }

}  // namespace headrace
