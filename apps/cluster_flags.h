#pragma once

#include <string>
#include <vector>

#include "base/options.h"
#include "headrace/cluster.h"

namespace headrace {

/// Rows for the secret and the certificates of links between machines. They write into their arguments, which must
/// outlive them.
[[nodiscard]] std::vector<Option> link_flags(std::string& secret_file, std::string& certificate, std::string& key,
                                             std::string& authority);

/// Rows of how a model is placed, which need no machines. They write into `options`, which must outlive them.
[[nodiscard]] Option placement_flag(ClusterOptions& options);
[[nodiscard]] Option pipeline_layers_flag(ClusterOptions& options);
[[nodiscard]] Option output_stage_flag(ClusterOptions& options);
[[nodiscard]] Option wire_dtype_flag(ClusterOptions& options);

/// A model over several machines, as it is asked for on a command line.
struct ClusterFlags {
  ClusterOptions options;
  std::string workers;  ///< "a:8100,b:8100"

  /// Rows that write into this, which must outlive them.
  [[nodiscard]] std::vector<Option> rows();
  /// What they say. Throws Error(kInvalidArgument) for what is none or does not go together.
  [[nodiscard]] ClusterOptions parsed() const;

 private:
  /// Throws Error(kInvalidArgument) for the first that is not as it was, where the model is all on this machine.
  void refuse_unused() const;
};

}  // namespace headrace
