#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/error.h"
#include "base/ids.h"

namespace headrace::cluster {

/// Version of all that machines say to each other; another one is refused at the handshake.
inline constexpr uint16_t kProtocolVersion = 4;

/// What a frame holds.
enum class FrameKind : uint8_t {
  kMessage = 1,      ///< one JSON object (message.h): control
  kPlan = 2,         ///< a StepPlan (step/plan_codec.h): head to every stage
  kActivations = 3,  ///< rows of the residual stream (activation_codec.h): stage to stage
  kResult = 4,       ///< a StepResult or why there is none (result_codec.h): last stage to head
  kBytes = 5,        ///< a piece of a model's file: head to worker
  kHeartbeat = 6,    ///< nothing
};

/// Bytes that a frame of that kind may have at most; a longer one is refused before anything is allocated.
[[nodiscard]] int64_t max_payload_bytes(FrameKind kind) noexcept;

/// Precedes each payload. Encoded little-endian, 32 bytes: magic u32 "HRCF" | version u16 | kind u8 | zero u8 |
/// epoch u32 | zero u32 | id u64 | payload_bytes u64.
struct FrameHeader {
  FrameKind kind = FrameKind::kMessage;
  EpochId epoch{};
  uint64_t id = 0;  ///< step_id of plans, activations and results; number of a request and its answer in messages
  int64_t payload_bytes = 0;
  bool operator==(const FrameHeader&) const = default;
};

inline constexpr size_t kFrameHeaderBytes = 32;
[[nodiscard]] std::array<std::byte, kFrameHeaderBytes> encode_header(const FrameHeader& header) noexcept;
/// kCorrupt for what is no header, kUnsupported for another version (with both), kCorrupt for too long a payload.
[[nodiscard]] Result<FrameHeader> decode_header(std::span<const std::byte, kFrameHeaderBytes> bytes);

}  // namespace headrace::cluster
