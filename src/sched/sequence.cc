#include "sched/sequence.h"

#include "base/check.h"

namespace headrace {
namespace {

bool may_change(SequenceState from, SequenceState to) {
  switch (to) {
    case SequenceState::kWaiting:  // a restart
      return from == SequenceState::kRunning || from == SequenceState::kPreempted;
    case SequenceState::kRunning:
      return from == SequenceState::kWaiting || from == SequenceState::kPreempted;
    case SequenceState::kPreempted:
      return from == SequenceState::kRunning;
    case SequenceState::kFinished:
      return from != SequenceState::kFinished;
  }
  return false;
}

}  // namespace

Sequence::Sequence(SequenceId sequence, uint64_t arrival_number, SequenceSpec sequence_spec)
    : id(sequence),
      arrival(arrival_number),
      spec(std::move(sequence_spec)),
      first_tokens(length()),
      next_output(spec.output_from < 0 ? length() - 1 : spec.output_from),
      received_output(next_output) {}

void Sequence::change_state(SequenceState to) {
  HR_CHECK(may_change(state_, to), "sequence ", raw(id), " cannot go from state ", static_cast<int>(state_), " to ",
           static_cast<int>(to));
  state_ = to;
  if (to == SequenceState::kRunning) {
    started = true;
    return;
  }
  computed = 0;
  reserved = 0;
  claimed = 0;
  decoding = false;
  announced.clear();
}

bool Sequence::before(const Sequence& other) const noexcept {
  return spec.priority != other.spec.priority ? spec.priority < other.spec.priority : arrival < other.arrival;
}

}  // namespace headrace
