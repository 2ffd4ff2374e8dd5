#pragma once

namespace headrace::cluster {

/// Where a stage's time went in one step, in seconds.
struct StageTimes {
  double compute = 0;    ///< inside operators, by the clock on the wall
  double cpu = 0;        ///< of these, CPU time of the thread that led them
  double wait = 0;       ///< for activations, the plan being there
  double serialise = 0;  ///< between the floats of the stage and the bytes of frames
  double wire = 0;       ///< sending the activations before these

  StageTimes& operator+=(const StageTimes& other) noexcept {
    compute += other.compute;
    cpu += other.cpu;
    wait += other.wait;
    serialise += other.serialise;
    wire += other.wire;
    return *this;
  }
  bool operator==(const StageTimes&) const = default;
};

}  // namespace headrace::cluster
