#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <vector>

namespace headrace::cluster {

/// A contiguous cut of sublayers over nodes in their order: node i holds [ends[i - 1], ends[i]).
struct Cut {
  std::vector<int32_t> ends;
  int32_t output_node = 0;  ///< 0, or the last node that holds anything
  double cost = 0;
  [[nodiscard]] int32_t first(size_t node) const noexcept { return node == 0 ? 0 : ends[node - 1]; }
};

/// What it costs a node to hold the sublayers [first, end), and the output projection; infinite: it cannot.
using CutCost = std::function<double(int32_t node, int32_t first, int32_t end, bool output)>;
inline constexpr double kImpossible = std::numeric_limits<double>::infinity();

/// How the costs of the nodes make that of a cut.
enum class CutObjective : uint8_t { kGreatest, kSum };

/// The cut of the least cost, by dynamic programming over nodes and sublayers: O(nodes x sublayers^2). Among equals the
/// output is the first node's. `output_on_first`: where it must be; none: anywhere. nullopt where every cut is
/// impossible.
[[nodiscard]] std::optional<Cut> best_cut(int32_t nodes, int32_t sublayers, std::optional<bool> output_on_first,
                                          CutObjective objective, const CutCost& cost);

}  // namespace headrace::cluster
