#include "backend/cpu/tuner.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>

#include "backend/cpu/cpu_backend.h"
#include "base/check.h"
#include "ops/recipe.h"

namespace headrace {
namespace {

constexpr int kTurns = 7;
constexpr double kLeastGain = 0.03;
constexpr int kLeastWins = 5;  // of kTurns
/// More than the second-level caches hold, so that weights come from where they do in a step.
constexpr int64_t kWorkingSet = int64_t{128} << 20;
constexpr int64_t kMostCopies = 32;  // of a small model's layers, which stay in the caches when it runs, too
constexpr std::array<int64_t, kNumRowClasses> kTriedRows{1, 4, 8, 16, 48, 256};

/// A way to run a kind of product, on a backend that runs all of them so.
struct Candidate {
  MatmulTuning tuning;
  std::unique_ptr<Backend> backend;
  std::unique_ptr<Queue> queue;
};

std::vector<MatmulTuning> candidates_of(const TunedShapes& shapes, Isa isa, int threads) {
  std::vector<MatmulTuning> all{{.isa = isa, .grain = 1}};  // the static choice comes first
  for (const OpVariant<MatmulFn>& variant : *matmul_table(shapes.dtype, shapes.layout)) {
    if (variant.isa == Isa::kRef || variant.isa > isa) continue;
    for (const int32_t grain : {1, 4, 16}) {
      const MatmulTuning tuning{.isa = variant.isa, .grain = grain};
      const bool same_as_static = variant.fn == matmul_table(shapes.dtype, shapes.layout)->best(isa).fn && grain == 1;
      if (!same_as_static && (threads > 1 || grain == 1)) all.push_back(tuning);
    }
  }
  return all;
}

std::vector<Candidate> make_candidates(ComputePool& pool, Isa isa, const TunedShapes& shapes) {
  std::vector<Candidate> candidates;
  for (const MatmulTuning& tuning : candidates_of(shapes, isa, pool.threads())) {
    CpuTuning all_rows;
    for (int i = 0; i < kNumRowClasses; ++i) {
      all_rows[{shapes.dtype, shapes.layout, static_cast<RowClass>(i)}] = tuning;
    }
    auto backend = make_cpu_backend(pool, isa, all_rows);
    auto queue = backend->make_queue();
    candidates.push_back({tuning, std::move(backend), std::move(queue)});
  }
  return candidates;
}

/// The matrices of one kind, as often as the working set asks for, with inputs and outputs for any number of rows.
class Problem {
 public:
  Problem(Backend& backend, const TunedShapes& shapes) : recipe_(*layout_recipe(shapes.layout, shapes.dtype)) {
    int64_t total = 0, widest = 0, deepest = 0;
    for (const auto& [n, k] : shapes.sizes) {
      total += packed_bytes(shapes.dtype, shapes.layout, n, k);
      widest = std::max(widest, n);
      deepest = std::max(deepest, k);
    }
    const int64_t copies = std::min(kWorkingSet / total + 1, kMostCopies);
    for (int64_t copy = 0; copy < copies; ++copy) {
      for (const auto& [n, k] : shapes.sizes) {
        DeviceBuffer& buffer = buffers_.emplace_back(backend, packed_bytes(shapes.dtype, shapes.layout, n, k));
        // As f16, f32 and bf16 this is small and no special value.
        std::memset(buffer.data(), 0x11, static_cast<size_t>(buffer.bytes()));
        weights_.push_back({.dtype = shapes.dtype, .layout = shapes.layout, .n = n, .k = k, .data = buffer.data()});
      }
    }
    const int64_t rows = kTriedRows.back();
    constexpr auto kFloat = static_cast<int64_t>(sizeof(float));
    x_ = DeviceBuffer(backend, rows * deepest * kFloat);
    for (int64_t i = 0; i < rows * deepest; ++i) x_.as<float>()[i] = static_cast<float>(i * 7919 % 199 - 99) / 64;
    act_ = DeviceBuffer(backend, rows * act_row_bytes(recipe_.act, (deepest + 255) / 256 * 256));
    y_ = DeviceBuffer(backend, rows * widest * kFloat);
  }

  /// Seconds of a pass over all matrices.
  double run(const Candidate& c, int64_t rows) const {
    double seconds = 0;
    for (const WeightView& w : weights_) {
      ActView x{.form = recipe_.act, .data = act_.data(), .rows = rows, .k = w.k};
      if (recipe_.act == ActForm::kF32) {
        x.data = x_.data();
      } else {
        c.backend->ops().quantize(*c.queue, {.x = x_.as<float>(), .y = x});
      }
      const auto begin = std::chrono::steady_clock::now();
      c.backend->ops().matmul(*c.queue, {.x = x, .w = w, .bias = nullptr, .y = y_.as<float>(), .y_stride = w.n});
      seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    }
    return seconds;
  }

 private:
  const MatmulRecipe& recipe_;
  std::vector<DeviceBuffer> buffers_;
  std::vector<WeightView> weights_;
  DeviceBuffer x_, act_, y_;
};

double median(std::vector<double> values) {
  std::ranges::nth_element(values, values.begin() + static_cast<ptrdiff_t>(values.size() / 2));
  return values[values.size() / 2];
}

TuneResult tune_rows(const std::vector<Candidate>& candidates, const Problem& problem, const TunedShapes& shapes,
                     RowClass rows) {
  const int64_t num_rows = kTriedRows[static_cast<size_t>(rows)];
  std::vector<std::vector<double>> seconds(candidates.size());
  for (const Candidate& c : candidates) (void)problem.run(c, num_rows);
  for (int turn = 0; turn < kTurns; ++turn) {
    for (size_t i = 0; i < candidates.size(); ++i) seconds[i].push_back(problem.run(candidates[i], num_rows));
  }
  size_t best = 0;
  for (size_t i = 1; i < candidates.size(); ++i) {
    if (median(seconds[i]) < median(seconds[best])) best = i;
  }
  int wins = 0;
  for (size_t turn = 0; turn < kTurns; ++turn) wins += seconds[best][turn] < seconds[0][turn] ? 1 : 0;
  TuneResult result{shapes.dtype,       shapes.layout,        rows, candidates[best].tuning,
                    median(seconds[0]), median(seconds[best])};
  result.adopted = wins >= kLeastWins && result.best_seconds < (1 - kLeastGain) * result.static_seconds;
  return result;
}

}  // namespace

CpuTuning tune_matmuls(ComputePool& pool, Isa isa, std::span<const TunedShapes> shapes,
                       const std::function<void(const TuneResult&)>& on_result) {
  CpuTuning tuning;
  for (const TunedShapes& kind : shapes) {
    const std::vector<Candidate> candidates = make_candidates(pool, isa, kind);
    if (candidates.size() < 2) continue;
    const Problem problem(*candidates[0].backend, kind);
    for (int i = 0; i < kNumRowClasses; ++i) {
      const TuneResult result = tune_rows(candidates, problem, kind, static_cast<RowClass>(i));
      if (result.adopted) tuning[{result.dtype, result.layout, result.rows}] = result.best;
      if (on_result) on_result(result);
    }
  }
  return tuning;
}

}  // namespace headrace
