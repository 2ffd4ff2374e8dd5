#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "cluster/link.h"
#include "cluster/stage_times.h"

namespace headrace::cluster {

/// What a stage has done since the pipeline began.
struct StageFigures {
  StageTimes seconds;  ///< sums over all steps
  LinkFigures links;   ///< of the head's link with a worker; the head's own: activations that it sent
};

/// What a pipeline has done since it began.
struct PipelineFigures {
  std::chrono::steady_clock::time_point begun;
  int64_t steps = 0;
  int64_t tokens = 0;  ///< computed: rows that went from stage to stage
  int32_t in_flight = 0;
  std::vector<StageFigures> stages;  ///< of the head, then of each worker
};

}  // namespace headrace::cluster
