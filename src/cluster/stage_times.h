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

/// When a worker did its part of one step, in seconds of its own steady clock since its pipeline began.
struct StageMoments {
  double plan = 0;   ///< the plan was there
  double rows = 0;   ///< the activations were there
  double begin = 0;  ///< of computing
  double sent = 0;   ///< what it computed, and its report, were given to the links
  bool operator==(const StageMoments&) const = default;
};

/// What a worker tells of its part of one step.
struct StageReport {
  StageTimes seconds = {};
  StageMoments moments = {};
  bool operator==(const StageReport&) const = default;
};

}  // namespace headrace::cluster
