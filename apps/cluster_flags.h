#pragma once

#include <string>
#include <vector>

#include "base/options.h"
#include "headrace/cluster.h"

namespace headrace {

/// A model over several machines, as it is asked for on a command line.
struct ClusterFlags {
  ClusterOptions options;
  std::string workers;          ///< "a:8100,b:8100"
  std::string pipeline_layers;  ///< "10,12,10"

  /// Rows that write into this, which must outlive them.
  [[nodiscard]] std::vector<Option> rows();
  /// What they say. Throws Error(kInvalidArgument) for lists that are none.
  [[nodiscard]] ClusterOptions parsed() const;
};

}  // namespace headrace
