#pragma once

#include <set>
#include <tuple>
#include <vector>

#include "sched/sequence.h"

namespace headrace {

/// When sequences must have started, and when they must be finished. Borrows the sequences from add() to erase().
class Deadlines {
 public:
  void add(const Sequence& sequence);
  void erase(const Sequence& sequence);
  /// Sequences whose deadline was before `now`, each once.
  [[nodiscard]] std::vector<SequenceId> take_expired(double now);

 private:
  enum class Kind : uint8_t { kStart, kFinish };
  std::set<std::tuple<double, Kind, const Sequence*>> times_;
};

}  // namespace headrace
