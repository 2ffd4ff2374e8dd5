#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/golden_find.h"
#include "engine/golden_outcome.h"

namespace headrace {

/// Tries goldens in a number of setups and holds the setups against each other.
class GoldenSuite {
 public:
  using Report = std::function<void(const GoldenOutcome&)>;

  /// `model`: the argument for goldens of a model that lies elsewhere; may be empty. `report` gets every outcome as it
  /// is known.
  GoldenSuite(std::string model, std::vector<GoldenSetup> setups, Report report);

  void run(const GoldenItem& item);

  [[nodiscard]] int64_t ok() const noexcept { return counts_[0]; }
  [[nodiscard]] int64_t failed() const noexcept { return counts_[1]; }
  [[nodiscard]] int64_t not_tried() const noexcept { return counts_[2]; }

 private:
  void run_setups(const GoldenItem& item);
  void report(GoldenOutcome outcome);

  std::string model_;
  std::vector<GoldenSetup> setups_;
  Report report_;
  int64_t counts_[3] = {0, 0, 0};  // by Verdict
};

}  // namespace headrace
