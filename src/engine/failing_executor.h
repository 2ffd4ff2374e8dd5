#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "sched/executor.h"

namespace headrace {

/// An executor whose steps fail when its user says so: for tests of what must go on after that.
class FailingExecutor final : public Executor {
 public:
  /// `fails` is asked once before each step, numbered from 1 in the order in which they run; its time is the step's.
  FailingExecutor(std::unique_ptr<Executor> inner, std::function<bool(int64_t step)> fails)
      : inner_(std::move(inner)), fails_(std::move(fails)) {}

  void submit(StepPlan plan) override { inner_->submit(std::move(plan)); }
  [[nodiscard]] bool can_take() const override { return inner_->can_take(); }
  [[nodiscard]] bool wait(bool for_room) override { return inner_->wait(for_room); }
  void wake() noexcept override { inner_->wake(); }
  void rehearse(bool on) noexcept override { inner_->rehearse(on); }
  [[nodiscard]] int64_t losses() const override { return inner_->losses(); }
  [[nodiscard]] double seconds_lost() const override { return inner_->seconds_lost(); }
  [[nodiscard]] Result<std::monostate> receive(StepResult& result) override {
    const bool fails = fails_(++steps_);
    auto received = inner_->receive(result);
    if (fails) return Error(ErrorCode::kInternal, cat("step ", steps_, " failed, as fault_injection asked"));
    return received;
  }

 private:
  std::unique_ptr<Executor> inner_;
  std::function<bool(int64_t)> fails_;
  int64_t steps_ = 0;
};

}  // namespace headrace
