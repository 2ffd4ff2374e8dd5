#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "base/ids.h"

namespace headrace {

/// Owner of requests, for fairness between owners. 0 where there is only one.
enum class TenantId : uint32_t {};

inline constexpr double kNoDeadline = std::numeric_limits<double>::infinity();

/// What the scheduler has to know of a sequence.
struct SequenceSpec {
  std::vector<TokenId> tokens;  ///< to begin with, not empty
  int32_t max_len = 0;          ///< tokens that it may grow to, those included
  int32_t output_from = -1;     ///< first position whose output comes back; -1: the last of `tokens`
  int32_t expected_len = 0;     ///< tokens that it will probably grow to; 0: not known
  int32_t priority = 0;         ///< lower goes first
  TenantId tenant{};
  uint64_t salt = 0;                    ///< prefixes are shared only between sequences of one salt
  double queue_deadline = kNoDeadline;  ///< clock seconds by which it must have started
  double deadline = kNoDeadline;        ///< clock seconds by which it must be finished
};

enum class SequenceState : uint8_t {
  kWaiting,    ///< never started, or sent back by a restart
  kRunning,    ///< has blocks
  kPreempted,  ///< gave its blocks up to others, will be computed again
  kFinished,
};

}  // namespace headrace
