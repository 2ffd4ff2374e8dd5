#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace headrace {

/// What a step makes a stage do.
struct StepLoad {
  int64_t decode_rows = 0;
  int64_t prompt_tokens = 0;
  int64_t attended_keys = 0;  ///< summed over all tokens of the step: a token at position p attends p + 1
  int64_t read_keys = 0;      ///< summed over rows and chunks: the tokens of a chunk share what is read from memory

  void add_decode(int32_t position) noexcept;
  void add_chunk(int32_t first_pos, int32_t num_tokens) noexcept;
  void add(const StepLoad& other) noexcept;
};

/// Seconds that a stage takes: a fixed part of each step, and so much for each unit of load. The defaults are of the
/// order of a small model on a few cores; measured steps soon replace them.
struct StageCost {
  double fixed = 2e-3;
  double per_decode_row = 1e-3;
  double per_prompt_token = 3e-4;
  double per_attended_key = 1e-7;
  double per_read_key = 3e-7;

  /// What `load` adds to a step.
  [[nodiscard]] double marginal(const StepLoad& load) const noexcept;
  [[nodiscard]] double seconds(const StepLoad& load) const noexcept { return fixed + marginal(load); }
  /// The longest chunk from `first_pos` on that adds at most `seconds`; may be 0.
  [[nodiscard]] int64_t chunk_for(double seconds, int32_t first_pos) const noexcept;
};

/// The costs of every stage, fitted to measured steps as they come: recursive least squares of relative errors, which
/// forgets only what new steps say again, and takes a step that is out of all proportion only as far as usual errors
/// go. Threading: one thread.
class CostModel {
 public:
  explicit CostModel(std::span<const StageCost> start);

  /// A step of `load` took so long on each stage.
  void learn(const StepLoad& load, std::span<const double> stage_seconds);

  [[nodiscard]] size_t num_stages() const noexcept { return fits_.size(); }
  [[nodiscard]] const StageCost& stage(size_t index) const noexcept { return fits_[index].cost; }
  /// The stage that takes longest for the loads seen of late.
  [[nodiscard]] const StageCost& slowest() const noexcept { return fits_[slowest_].cost; }
  /// Moving mean of |predicted - measured| / measured of the slowest stage; 0 before the first step.
  [[nodiscard]] double relative_error() const noexcept { return fits_[slowest_].error; }
  /// measured / predicted that one in two hundred steps with prompts beside decode rows exceeds, on the slowest stage;
  /// 1 to 2.
  [[nodiscard]] double late_ratio() const noexcept { return fits_[slowest_].late_ratio; }

 private:
  static constexpr size_t kTerms = 5;
  struct Fit {
    StageCost start;
    StageCost cost;
    std::array<double, kTerms> factor{};  ///< cost = start x factor
    std::array<std::array<double, kTerms>, kTerms> covariance{};
    double error = 0;         ///< moving mean, as relative_error()
    double usual_error = 0;   ///< moving mean of errors, outliers cut
    double late_ratio = 1.5;  ///< as late_ratio(); no machine is seldom late before it has shown it
    double recent_seconds = 0;
    int64_t steps = 0;
  };
  void find_slowest() noexcept;
  void learn(Fit& fit, const StepLoad& load, double measured);
  /// Moves factors that fell too low up to the least one, and the others with them as far as they are correlated: to
  /// the nearest point by what is known. Cut alone, the others would make up for it without end.
  static void keep_positive(Fit& fit) noexcept;

  std::vector<Fit> fits_;
  size_t slowest_ = 0;
};

}  // namespace headrace
