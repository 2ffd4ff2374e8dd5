#pragma once

#include "sched/sequence.h"

namespace headrace {

/// Sequences whose next row is one token of decoding, in the order in which their tokens came: as results come in the
/// order of steps, the oldest served is first. A list through the sequences themselves: nothing is allocated.
class DecodeQueue {
 public:
  void push_back(Sequence& sequence) noexcept {
    sequence.prev_decode = last_;
    sequence.next_decode = nullptr;
    (last_ != nullptr ? last_->next_decode : first_) = &sequence;
    last_ = &sequence;
  }
  void erase(Sequence& sequence) noexcept {
    (sequence.prev_decode != nullptr ? sequence.prev_decode->next_decode : first_) = sequence.next_decode;
    (sequence.next_decode != nullptr ? sequence.next_decode->prev_decode : last_) = sequence.prev_decode;
  }
  /// nullptr: empty. Then on by next_decode.
  [[nodiscard]] Sequence* front() const noexcept { return first_; }

 private:
  Sequence* first_ = nullptr;
  Sequence* last_ = nullptr;
};

}  // namespace headrace
