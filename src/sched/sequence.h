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
  std::vector<TokenId> tokens{};  ///< to begin with, not empty
  int32_t max_len = 0;            ///< tokens that it may grow to, those included
  int32_t output_from = -1;       ///< first position whose output comes back; -1: the last of `tokens`
  int32_t expected_len = 0;       ///< tokens that it will probably grow to; 0: not known
  int32_t priority = 0;           ///< lower goes first
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

/// What the scheduler keeps of a sequence. Its queues are views: what a sequence waits for follows from its state and
/// its numbers of tokens.
struct Sequence {
  Sequence(SequenceId sequence, uint64_t arrival_number, SequenceSpec sequence_spec);

  const SequenceId id;
  const uint64_t arrival;  ///< rises with every sequence
  SequenceSpec spec;       ///< tokens are those of now; the priority rises if it has waited too long
  int32_t first_tokens;    ///< how many tokens it began with
  int32_t cached_tokens = 0;

  int32_t computed = 0;  ///< positions below are in submitted steps
  int32_t reserved = 0;  ///< positions below have blocks
  int32_t claimed = 0;   ///< positions below will soon need blocks
  /// First position whose output was not asked for in a submitted step, and of which none came back. A sequence that is
  /// computed again does not ask twice.
  int32_t next_output;
  int32_t received_output;
  std::vector<int32_t> announced;  ///< entries of the table of each cache group that stages know; empty: none
  uint64_t last_step = 0;          ///< the latest step it has a row in
  bool started = false;            ///< has run at some time
  bool decoding = false;           ///< running, and all it began with was submitted

  int32_t queued_tokens = 0;  ///< to compute, when it entered the queue of prompts or the waiting one
  enum class Queue : uint8_t { kNone, kWaiting, kPrompts, kDecodes } queue = Queue::kNone;
  Sequence* next_decode = nullptr;  ///< links of the queue of decode rows
  Sequence* prev_decode = nullptr;

  [[nodiscard]] SequenceState state() const noexcept { return state_; }
  /// The only way from state to state. Fails a check if there is no such way.
  void change_state(SequenceState to);

  [[nodiscard]] int32_t length() const noexcept { return static_cast<int32_t>(spec.tokens.size()); }
  /// Tokens to be computed.
  [[nodiscard]] int32_t remaining() const noexcept { return length() - computed; }
  /// Has priority over `other` wherever there is not enough for both: lower priority number, then earlier arrival.
  [[nodiscard]] bool before(const Sequence& other) const noexcept;

 private:
  SequenceState state_ = SequenceState::kWaiting;
};

}  // namespace headrace
