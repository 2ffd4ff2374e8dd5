#include "cluster/cut_search.h"

#include <algorithm>

namespace headrace::cluster {
namespace {

/// The least costs of holding the sublayers before each end on the nodes up to each, the output being the first node's
/// or that of none of them.
class Table {
 public:
  Table(int32_t nodes, int32_t sublayers, CutObjective objective) : sublayers_(sublayers), objective_(objective) {
    cells_.resize(static_cast<size_t>(nodes) * static_cast<size_t>(sublayers + 1));
  }

  void fill(const CutCost& cost, int32_t nodes, bool output_on_first) {
    for (int32_t end = 0; end <= sublayers_; ++end) cells_[index(0, end)] = {cost(0, 0, end, output_on_first), 0};
    for (int32_t node = 1; node < nodes; ++node) {
      for (int32_t end = 0; end <= sublayers_; ++end) cells_[index(node, end)] = add(cost, node, end, false);
    }
  }
  struct Cell {
    double cost = kImpossible;
    int32_t first = 0;  // of the last node
  };
  /// Of the best cut that ends at `end` on `node`, which comes after those that were filled.
  [[nodiscard]] Cell add(const CutCost& cost, int32_t node, int32_t end, bool output) const {
    Cell best;
    for (int32_t first = 0; first <= end; ++first) {
      const double before = cell(node - 1, first).cost;
      if (before >= best.cost) continue;
      const double own = cost(node, first, end, output);
      const double all = objective_ == CutObjective::kGreatest ? std::max(before, own) : before + own;
      if (all < best.cost) best = {all, first};
    }
    return best;
  }
  [[nodiscard]] const Cell& cell(int32_t node, int32_t end) const { return cells_[index(node, end)]; }

 private:
  [[nodiscard]] size_t index(int32_t node, int32_t end) const noexcept {
    return static_cast<size_t>(node) * static_cast<size_t>(sublayers_ + 1) + static_cast<size_t>(end);
  }

  int32_t sublayers_;
  CutObjective objective_;
  std::vector<Cell> cells_;
};

/// The ends of the nodes up to `node`, the last of them being `end`.
void trace_back(const Table& table, int32_t node, int32_t end, std::vector<int32_t>& ends) {
  for (; node >= 0; --node) {
    ends[static_cast<size_t>(node)] = end;
    end = table.cell(node, end).first;
  }
}

}  // namespace

std::optional<Cut> best_cut(int32_t nodes, int32_t sublayers, std::optional<bool> output_on_first,
                            CutObjective objective, const CutCost& cost) {
  Cut best{.ends = std::vector<int32_t>(static_cast<size_t>(nodes), sublayers), .output_node = 0, .cost = kImpossible};
  Table table(nodes, sublayers, objective);
  if (output_on_first.value_or(true)) {
    table.fill(cost, nodes, true);
    best.cost = table.cell(nodes - 1, sublayers).cost;
    if (best.cost < kImpossible) trace_back(table, nodes - 1, sublayers, best.ends);
  }
  if (!output_on_first.value_or(false)) {
    table.fill(cost, nodes, false);
    for (int32_t last = 1; last < nodes; ++last) {
      const Table::Cell cell = table.add(cost, last, sublayers, true);
      if (!(cell.cost < best.cost)) continue;
      best.cost = cell.cost;
      best.output_node = last;
      std::fill(best.ends.begin() + last, best.ends.end(), sublayers);
      trace_back(table, last - 1, cell.first, best.ends);
    }
  }
  if (best.cost == kImpossible) return std::nullopt;
  return best;
}

}  // namespace headrace::cluster
