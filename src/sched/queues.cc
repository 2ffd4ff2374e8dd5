#include "sched/queues.h"

namespace headrace {
namespace {

Sequence::Queue proper_queue(const Sequence& sequence) {
  using Queue = Sequence::Queue;
  switch (sequence.state()) {
    case SequenceState::kWaiting:
    case SequenceState::kPreempted:
      // Without an output to ask for, computing can wait: for the next token, or the end.
      return sequence.next_output < sequence.length() ? Queue::kWaiting : Queue::kNone;
    case SequenceState::kRunning:
      if (sequence.remaining() == 0) return Queue::kNone;
      return sequence.decoding && sequence.remaining() == 1 ? Queue::kDecodes : Queue::kPrompts;
    case SequenceState::kFinished:
      return Queue::kNone;
  }
  return Queue::kNone;
}

}  // namespace

void Queues::place(Sequence& sequence) {
  const Sequence::Queue queue = proper_queue(sequence);
  if (queue == sequence.queue) return;
  remove(sequence);
  sequence.queue = queue;
  if (queue == Sequence::Queue::kWaiting) waiting_.push(sequence);
  if (queue == Sequence::Queue::kPrompts) prompts_.push(sequence);
  if (queue == Sequence::Queue::kDecodes) decodes_.push_back(sequence);
}

void Queues::remove(Sequence& sequence) {
  if (sequence.queue == Sequence::Queue::kWaiting) waiting_.erase(sequence);
  if (sequence.queue == Sequence::Queue::kPrompts) prompts_.erase(sequence);
  if (sequence.queue == Sequence::Queue::kDecodes) decodes_.erase(sequence);
  sequence.queue = Sequence::Queue::kNone;
}

}  // namespace headrace
