#include "sched/deadlines.h"

#include <algorithm>

namespace headrace {

void Deadlines::add(const Sequence& sequence) {
  const SequenceSpec& spec = sequence.spec;
  if (spec.queue_deadline < kNoDeadline) times_.emplace(spec.queue_deadline, Kind::kStart, &sequence);
  if (spec.deadline < kNoDeadline) times_.emplace(spec.deadline, Kind::kFinish, &sequence);
}

void Deadlines::erase(const Sequence& sequence) {
  times_.erase({sequence.spec.queue_deadline, Kind::kStart, &sequence});
  times_.erase({sequence.spec.deadline, Kind::kFinish, &sequence});
}

std::vector<SequenceId> Deadlines::take_expired(double now) {
  std::vector<SequenceId> expired;
  while (!times_.empty() && std::get<double>(*times_.begin()) < now) {
    const auto [time, kind, sequence] = *times_.begin();
    times_.erase(times_.begin());
    if (kind == Kind::kStart && sequence->started) continue;
    expired.push_back(sequence->id);
    erase(*sequence);
  }
  return expired;
}

}  // namespace headrace
