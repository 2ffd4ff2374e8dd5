#pragma once

#include <string>
#include <vector>

#include "cluster/placement.h"

namespace headrace::cluster {

/// A node as a file describes it.
struct DescribedNode {
  NodeOffer offer;
  double memory_bytes_per_second = 0;  ///< 0: not said
};

/// Reads a YAML or JSON file "nodes:" with a list of machines, the head first; it may be part of a cluster's file, the
/// rest of which is left unread. Each machine has
///   name, memory_gb (10^9 bytes, for weights, workspace and KV cache together);
///   what was measured: rows, layer_ms, output_ms, lists of one length; or what a data sheet says: memory_gb_per_s, and
///   int8_tops or cores with gops_per_core; efficiency (the share of these that is reached), fixed_ms of each step;
///   link_gbit and link_rtt_ms of the way to the next node.
/// Throws Error, one line with file, line, entry and what is expected.
[[nodiscard]] std::vector<DescribedNode> read_nodes_file(const std::string& path, const ModelUnits& model);

}  // namespace headrace::cluster
