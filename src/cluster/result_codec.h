#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/error.h"
#include "cluster/stage_times.h"
#include "step/step_plan.h"

namespace headrace::cluster {

/// What became of a step, and where and when the stages' time went, in the order of the stages.
struct StepOutcome {
  Result<StepResult> result;
  std::vector<StageReport> stages;
};

/// Appends all of a kResult payload but result.data, whose bytes are the next and last part of the frame, not copied;
/// result.data has outputs.size() * width values. Little-endian:
///   failed u8: 0 | zeros 3 bytes | epoch u32 | step_id u64 | width u64
///   stages u32:        compute f64 | cpu f64 | wait f64 | serialise f64 | wire f64 |
///                      plan f64 | rows f64 | begin f64 | sent f64
///   outputs u32:       sequence u64 | position i32
///   tokens u32:        i32 each
///   stage_seconds u32: f64 each
///   data:              outputs * width f32
void encode_result(const StepResult& result, std::span<const StageReport> stages, std::vector<std::byte>& out);

/// Appends the payload of a step that failed:
///   failed u8: 1 | code u8 | zeros 2 bytes | stages as above | message u32: bytes, UTF-8, at most kMaxErrorBytes
void encode_failure(const Error& error, std::span<const StageReport> stages, std::vector<std::byte>& out);
inline constexpr size_t kMaxErrorBytes = 4096;  ///< longer messages are cut

/// The outcome that `payload` holds, all of it. kCorrupt where it holds none; every count is checked against the bytes
/// that are left before anything is allocated, and times are finite. Says nothing else of the result's sense.
[[nodiscard]] Result<StepOutcome> decode_outcome(std::span<const std::byte> payload);

}  // namespace headrace::cluster
