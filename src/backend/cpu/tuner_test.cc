#include "backend/cpu/tuner.h"

#include <gtest/gtest.h>

#include "backend/cpu/cpu_backend.h"
#include "backend/known_problems.h"

namespace headrace {
namespace {

TEST(RowClass, TilesTheNumbersOfRows) {
  int classes = 1;
  for (int64_t rows = 2; rows <= 1000; ++rows) {
    ASSERT_GE(row_class(rows), row_class(rows - 1));
    if (row_class(rows) != row_class(rows - 1)) ++classes;
  }
  EXPECT_EQ(classes, kNumRowClasses);
  EXPECT_EQ(row_class(1), RowClass::k1);
  EXPECT_EQ(row_class(8), RowClass::k5To8);
  EXPECT_EQ(row_class(65), RowClass::k65Up);
}

TEST(Tuner, TriesEveryNumberOfRowsAndAdoptsOnlyWhatWasFaster) {
  ComputePool pool(2);
  const TunedShapes shapes{
      .dtype = DType::kQ4_0, .layout = WeightLayout::kInterleaved16, .sizes = {{.n = 48, .k = 64}, {.n = 7, .k = 32}}};
  std::vector<TuneResult> results;
  const CpuTuning tuning =
      tune_matmuls(pool, best_isa(), std::span(&shapes, 1), [&](const TuneResult& r) { results.push_back(r); });
  ASSERT_EQ(results.size(), static_cast<size_t>(kNumRowClasses));
  size_t adopted = 0;
  for (const TuneResult& r : results) {
    EXPECT_GT(r.static_seconds, 0);
    EXPECT_LE(r.best_seconds, r.static_seconds) << "the static choice is among those tried";
    EXPECT_LE(r.best.isa, best_isa());
    const auto found = tuning.find({r.dtype, r.layout, r.rows});
    ASSERT_EQ(found != tuning.end(), r.adopted);
    if (!r.adopted) continue;
    ++adopted;
    EXPECT_TRUE(found->second == r.best);
    EXPECT_LT(r.best_seconds, r.static_seconds * 0.97);
  }
  EXPECT_EQ(tuning.size(), adopted);
}

/// Whatever a file of choices says, products stay the same, and kernels stay within the class asked for.
TEST(Tuner, ChoicesChangeNoBit) {
  ComputePool pool(2);
  CpuTuning tuning;
  const auto set = [&](RowClass rows, MatmulTuning choice) {
    tuning[{DType::kQ4_K, WeightLayout::kInterleaved16, rows}] = choice;
  };
  set(RowClass::k1, {.isa = Isa::kAmx, .grain = 1000});
  set(RowClass::k2To4, {.isa = Isa::kRef, .grain = 1});
  set(RowClass::k5To8, {.isa = Isa::kAvx2, .grain = -5});
  const Isa isa = std::min(best_isa(), Isa::kAvx2);
  const auto plain = make_cpu_backend(pool, isa), tuned = make_cpu_backend(pool, isa, tuning);
  for (const ChosenKernel& kernel : tuned->chosen_kernels()) EXPECT_NE(kernel.variant, "amx") << kernel.op;
  const auto solve = [&](Backend& backend, int64_t rows) {
    struct Memory final : ProblemMemory {
      explicit Memory(Backend& b) : backend(b) {}
      std::byte* place(std::span<const std::byte> bytes) override {
        buffers.emplace_back(backend, std::ssize(bytes));
        std::copy(bytes.begin(), bytes.end(), buffers.back().data());
        return buffers.back().data();
      }
      Backend& backend;
      std::vector<DeviceBuffer> buffers;
    } memory(backend);
    const KnownProblem<MatmulArgs> problem =
        matmul_problem(memory, {.rows = rows, .widths = 6}, DType::kQ4_K, WeightLayout::kInterleaved16);
    const auto queue = backend.make_queue();
    backend.ops().matmul(*queue, problem.args);
    return std::vector<std::byte>(problem.output, problem.output + problem.output_bytes);
  };
  for (const int64_t rows : {1, 3, 7, 12}) EXPECT_TRUE(solve(*plain, rows) == solve(*tuned, rows)) << rows << " rows";
}

}  // namespace
}  // namespace headrace
