#pragma once

#include "arch/arch_spec.h"
#include "backend/backend.h"
#include "base/compute_pool.h"
#include "cluster/node_costs.h"
#include "files/model_files.h"
#include "model/comm.h"
#include "ops/recipe.h"

namespace headrace::cluster {

/// What a machine is to compute with.
struct ProbeSite {
  const ModelFiles& files;  ///< the weights may be zeros: products take as long
  const ArchSpec& spec;
  Backend& backend;
  ComputePool& pool;
  Comm& comm;
  Numerics numerics = Numerics::kPortable;
  DType kv_dtype = DType::kF16;
};

/// Measures what a decoder layer, its attention alone, and the output projection take here, in steps of 1 to 128 rows
/// that decode after some hundred tokens: by a stage for each, which is packed for it and dropped. Five seconds or so;
/// less rows where a step takes long. Throws as Stage and StageWeights do.
[[nodiscard]] NodeCosts probe_node(const ProbeSite& site);

}  // namespace headrace::cluster
