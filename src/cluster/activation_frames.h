#pragma once

#include <vector>

#include "cluster/activation_codec.h"
#include "cluster/frame_sender.h"

namespace headrace::cluster {

/// A step's rows on their way to the next stage; f32 rows travel as they are.
[[nodiscard]] inline OutFrame frame_of_rows(EpochId epoch, StepId step, std::vector<float> rows, int64_t width,
                                            WireDtype dtype) {
  OutFrame frame{.header = {.kind = FrameKind::kActivations, .epoch = epoch, .id = raw(step)},
                 .bytes = {},
                 .shared = {},
                 .data = {}};
  encode_activations(rows, width, dtype, frame.bytes);
  if (dtype == WireDtype::kF32) frame.data = std::move(rows);
  return frame;
}

}  // namespace headrace::cluster
