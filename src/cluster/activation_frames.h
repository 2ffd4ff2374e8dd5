#pragma once

#include <vector>

#include "cluster/activation_codec.h"
#include "cluster/frame_sender.h"

namespace headrace::cluster {

/// For a step whose rows do not matter: whoever gets it makes up its own.
[[nodiscard]] inline OutFrame frame_without_rows(EpochId epoch, StepId step) {
  return {.header = {.kind = FrameKind::kActivations, .epoch = epoch, .id = raw(step)},
          .bytes = {},
          .shared = {},
          .data = {}};
}

/// A step's rows on their way to the next stage; f32 rows travel as they are.
[[nodiscard]] inline OutFrame frame_of_rows(EpochId epoch, StepId step, std::vector<float> rows, int64_t width,
                                            WireDtype dtype) {
  OutFrame frame = frame_without_rows(epoch, step);
  encode_activations(rows, width, dtype, frame.bytes);
  if (dtype == WireDtype::kF32) frame.data = std::move(rows);
  return frame;
}

}  // namespace headrace::cluster
