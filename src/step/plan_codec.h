#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/error.h"
#include "step/step_plan.h"

namespace headrace {

/// Version of the encoding; a plan of another version is refused.
inline constexpr uint16_t kPlanVersion = 2;

/// Appends `plan`, little-endian:
///   version u16 | zero u16 | epoch u32 | step_id u64
///   rows u32:     sequence u64 | first_pos i32 | num_tokens i32 | num_outputs i32
///   tokens u32:   i32 each
///   changes u32:  sequence u64 | group i32 | base_blocks i32 | blocks u32: i32 each
///   retired u32:  u64 each
///   copies u32:   group i32 | from i32 | to i32
void encode_plan(const StepPlan& plan, std::vector<std::byte>& out);

/// The plan that `bytes` hold, all of them. Every count is checked against the bytes that are left before anything is
/// allocated. Says nothing of the plan's sense: BlockTables::apply checks that.
[[nodiscard]] Result<StepPlan> decode_plan(std::span<const std::byte> bytes);

}  // namespace headrace
