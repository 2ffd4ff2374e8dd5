#pragma once

#include "base/error.h"
#include "step/step_plan.h"

namespace headrace {

/// Runs steps, in the order in which they are submitted: on this machine, over a pipeline, or in a simulation. The
/// scheduler may submit a plan before the results of earlier ones have come.
class Executor {
 public:
  virtual ~Executor() = default;
  virtual void submit(StepPlan plan) = 0;
  /// Whether the first stage would begin a step that is submitted now at once, or as soon as it has done its present
  /// one: more than that ahead would only fix decisions too early.
  [[nodiscard]] virtual bool can_take() const = 0;
  /// Waits until receive() would not, or (`for_room`) until can_take(), or for wake(). Whether receive() would not
  /// wait. At least one step must be outstanding. An executor that computes when a result is asked for never waits
  /// here.
  [[nodiscard]] virtual bool wait(bool for_room) {
    static_cast<void>(for_room);
    return true;
  }
  /// Ends a wait() of another thread, or the next one if there is none. From any thread.
  virtual void wake() noexcept {}
  /// Until it is off again only the times of steps matter, not what they compute: numbers may be made up where that
  /// saves sending them. While no step is outstanding.
  virtual void rehearse(bool on) noexcept { static_cast<void>(on); }
  /// How often machines were lost, and with them what steps had computed: those of the epoch fail, and another one
  /// begins with machines that have come back.
  [[nodiscard]] virtual int64_t losses() const { return 0; }
  /// How long machines have been gone that are waited for; 0: none is. can_take() is false meanwhile.
  [[nodiscard]] virtual double seconds_lost() const { return 0; }
  /// Waits for the oldest step whose result was not received yet, and moves its result to `result`. A failed step is an
  /// error; later ones may still succeed. At least one step must be outstanding.
  [[nodiscard]] virtual Result<std::monostate> receive(StepResult& result) = 0;
};

}  // namespace headrace
