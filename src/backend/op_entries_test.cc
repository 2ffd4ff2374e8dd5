// Every operator on every device gives the bits of the reference kernels, with any number of threads.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "backend/cpu/cpu_backend.h"
#include "backend/fakedev/fakedev_backend.h"
#include "backend/known_problems.h"
#include "backend/op_work.h"
#include "base/cat.h"
#include "base/test_walk.h"
#include "quant/format.h"

namespace headrace {
namespace {

/// A device with a queue, and problems laid out in its memory.
class Device final : public ProblemMemory {
 public:
  explicit Device(Backend& backend) : backend_(backend), queue_(backend.make_queue()) {}
  ~Device() override { queue_->synchronize(); }

  std::byte* place(std::span<const std::byte> bytes) override {
    pieces_.emplace_back(backend_, static_cast<int64_t>(bytes.size()));
    backend_.upload(*queue_, pieces_.back().data(), bytes.data(), std::ssize(bytes));
    queue_->synchronize();  // `bytes` are the caller's
    return pieces_.back().data();
  }

  template <class Args>
  std::vector<std::byte> solve(const KnownProblem<Args>& problem, OpEntry<Args> entry) {
    std::vector<std::byte> output = run(problem, [&](Queue& queue) { entry(queue, problem.args); });
    pieces_.clear();
    return output;
  }

  /// The problem's output after `work`.
  template <class Args, class Work>
  std::vector<std::byte> run(const KnownProblem<Args>& problem, const Work& work) {
    std::vector<std::byte> output(static_cast<size_t>(problem.output_bytes));
    work(*queue_);
    backend_.download(*queue_, output.data(), problem.output, problem.output_bytes);
    queue_->synchronize();
    return output;
  }

 private:
  Backend& backend_;
  std::unique_ptr<Queue> queue_;
  std::vector<DeviceBuffer> pieces_;
};

/// Compares the answers of devices with those of the reference kernels on one thread.
class Comparison {
 public:
  explicit Comparison(std::vector<Backend*> tested)
      : one_thread_(1), reference_backend_(make_cpu_backend(one_thread_, Isa::kRef)), tested_(std::move(tested)) {}

  template <class Args, class Make>
  void expect_equal(const std::string& what, OpEntry<Args> OpEntries::*entry, const Make& make) {
    if (!walk_.takes_next()) return;
    const std::vector<std::byte> want = solve(*reference_backend_, entry, make);
    for (size_t i = 0; i < tested_.size(); ++i) {
      ASSERT_NE(tested_[i]->ops().*entry, nullptr) << what;
      const std::vector<std::byte> got = solve(*tested_[i], entry, make);
      ASSERT_EQ(got.size(), want.size());
      const auto [first, other] = std::mismatch(got.begin(), got.end(), want.begin());
      EXPECT_TRUE(first == got.end()) << what << " on " << tested_[i]->name() << " " << i << ": byte "
                                      << first - got.begin() << " of " << got.size();
    }
  }
  [[nodiscard]] const std::vector<Backend*>& tested() const noexcept { return tested_; }

 private:
  template <class Args, class Make>
  static std::vector<std::byte> solve(Backend& backend, OpEntry<Args> OpEntries::*entry, const Make& make) {
    Device device(backend);
    return device.solve(make(device), backend.ops().*entry);
  }

  ComputePool one_thread_;
  std::unique_ptr<Backend> reference_backend_;
  const std::vector<Backend*> tested_;
  TestWalk walk_{"operators of a backend", 3};
};

/// Every operator, with one row, with a few, and with enough of them to be split over threads.
void expect_all_equal(Comparison& comparison) {
  for (const ProblemSize size :
       {ProblemSize{.rows = 1}, ProblemSize{.rows = 7}, ProblemSize{.rows = 64, .widths = 8}}) {
    comparison.expect_equal("rms_norm", &OpEntries::rms_norm,
                            [&](ProblemMemory& m) { return rms_norm_problem(m, size); });
    comparison.expect_equal("add", &OpEntries::add, [&](ProblemMemory& m) { return add_problem(m, size); });
    comparison.expect_equal("silu_mul", &OpEntries::silu_mul,
                            [&](ProblemMemory& m) { return silu_mul_problem(m, size); });
    comparison.expect_equal("gather_rows", &OpEntries::gather_rows,
                            [&](ProblemMemory& m) { return gather_rows_problem(m, size); });
    comparison.expect_equal("rope_table", &OpEntries::rope_table,
                            [&](ProblemMemory& m) { return rope_table_problem(m, size); });
    for (const RopeLayout layout : {RopeLayout::kHalfSplit, RopeLayout::kInterleaved}) {
      comparison.expect_equal("rope", &OpEntries::rope,
                              [&](ProblemMemory& m) { return rope_problem(m, size, layout); });
    }
    for (const ActForm form : kRoundedActForms) {
      comparison.expect_equal("quantize", &OpEntries::quantize,
                              [&](ProblemMemory& m) { return quantize_problem(m, size, form); });
    }
    for (const DType kv : {DType::kF32, DType::kF16}) {
      comparison.expect_equal("kv_write", &OpEntries::kv_write,
                              [&](ProblemMemory& m) { return kv_write_problem(m, size, kv); });
    }
  }
  for (const ProblemSize size : {ProblemSize{.rows = 1}, ProblemSize{.rows = 9, .widths = 2}}) {
    for (const DType kv : {DType::kF32, DType::kF16}) {
      for (const int32_t window : {0, 45}) {
        comparison.expect_equal("attention", &OpEntries::attention,
                                [&](ProblemMemory& m) { return attention_problem(m, size, kv, window); });
      }
    }
  }
}

void expect_all_weights_equal(Comparison& comparison) {
  int products = 0;
  for (const BlockFormat* const format : all_formats()) {
    for (const WeightLayout layout : kAllWeightLayouts) {
      const DType dtype = format->dtype;
      const bool has_table = matmul_table(dtype, layout) != nullptr;
      for (const Backend* backend : comparison.tested()) EXPECT_EQ(backend->has_matmul(dtype, layout), has_table);
      if (!has_table) continue;
      ++products;
      const std::string what = cat(dtype_name(dtype), " ", weight_layout_name(layout));
      for (const ProblemSize size : {ProblemSize{.rows = 1}, ProblemSize{.rows = 9, .widths = 3}}) {
        comparison.expect_equal("matmul " + what, &OpEntries::matmul,
                                [&](ProblemMemory& m) { return matmul_problem(m, size, dtype, layout); });
        comparison.expect_equal("embed " + what, &OpEntries::embed,
                                [&](ProblemMemory& m) { return embed_problem(m, size, dtype, layout); });
      }
    }
  }
  EXPECT_GE(products, 15 + 11);  // F32, F16, BF16 and 12 block types as rows at least, 12 interleaved less one
}

TEST(OpEntries, FakedevGivesTheBitsOfTheProcessor) {
  const std::unique_ptr<Backend> fakedev = make_fakedev_backend(int64_t{64} << 20);
  Comparison comparison({fakedev.get()});
  expect_all_equal(comparison);
  expect_all_weights_equal(comparison);
}

class OpEntriesOnCpu : public testing::TestWithParam<Isa> {};

TEST_P(OpEntriesOnCpu, GivesTheBitsOfTheReferenceOnAnyNumberOfThreads) {
  if (!machine_has(GetParam())) GTEST_SKIP() << "this machine has no " << isa_name(GetParam());
  std::vector<std::unique_ptr<ComputePool>> pools;
  std::vector<std::unique_ptr<Backend>> backends;
  std::vector<Backend*> tested;
  for (const int threads : {1, 2, 3}) {
    pools.push_back(std::make_unique<ComputePool>(threads));
    backends.push_back(make_cpu_backend(*pools.back(), GetParam()));
    tested.push_back(backends.back().get());
  }
  Comparison comparison(tested);
  expect_all_equal(comparison);
  expect_all_weights_equal(comparison);
}

/// Fused calls give what the single ones give. The chain: norm, then rounding, of a few rows and of enough for all
/// threads. The batch: products of different widths and types, cut by ranges that span them.
TEST(OpEntries, FusedCallsGiveTheBitsOfSingleOnes) {
  ComputePool one(1), three(3);
  const std::unique_ptr<Backend> plain = make_cpu_backend(one, Isa::kRef);
  const std::unique_ptr<Backend> cpu = make_cpu_backend(three, best_isa());
  const std::unique_ptr<Backend> fakedev = make_fakedev_backend(int64_t{64} << 20);
  const auto chain = [](Backend& backend, ProblemSize size, bool fused) {
    Device device(backend);
    KnownProblem<RmsNormArgs> norm = rms_norm_problem(device, size);
    KnownProblem<QuantizeArgs> rounding = quantize_problem(device, size, ActForm::kQ8x32);
    norm.args.dim = rounding.args.y.k = std::min(norm.args.dim, rounding.args.y.k) / 32 * 32;
    norm.args.rows = rounding.args.y.rows = std::min(norm.args.rows, rounding.args.y.rows);
    rounding.args.x = norm.args.y;
    return device.run(rounding, [&](Queue& queue) {
      RowChain both(norm.args.rows);
      both.then(norm.args);
      both.then(rounding.args);
      if (fused) return backend.ops().row_chain(queue, both);
      backend.ops().rms_norm(queue, norm.args);
      backend.ops().quantize(queue, rounding.args);
    });
  };
  for (const ProblemSize size : {ProblemSize{.rows = 3}, ProblemSize{.rows = 65, .widths = 8}}) {
    const std::vector<std::byte> want = chain(*plain, size, false);
    EXPECT_TRUE(chain(*cpu, size, true) == want);
    EXPECT_TRUE(chain(*fakedev, size, true) == want);
  }
  const auto batch = [](Backend& backend, bool fused) {
    Device device(backend);
    const KnownProblem<MatmulArgs> first = matmul_problem(device, {.rows = 5}, DType::kF32, WeightLayout::kRows);
    const KnownProblem<MatmulArgs> last =
        matmul_problem(device, {.rows = 5, .widths = 6}, DType::kQ4_K, WeightLayout::kInterleaved16);
    const auto run = [&](Queue& queue) {
      if (!fused) {
        backend.ops().matmul(queue, first.args);
        return backend.ops().matmul(queue, last.args);
      }
      MatmulBatch both;
      both.products.push_back(first.args);
      both.products.push_back(last.args);
      backend.ops().matmul_batch(queue, both);
    };
    return std::pair(device.run(first, run), device.run(last, run));
  };
  const auto want = batch(*plain, false);
  EXPECT_TRUE(batch(*cpu, true) == want);
  EXPECT_TRUE(batch(*fakedev, true) == want);
}

INSTANTIATE_TEST_SUITE_P(Isas, OpEntriesOnCpu, testing::ValuesIn(kAllIsas),
                         [](const auto& isa) { return std::string(isa_name(isa.param)); });

}  // namespace
}  // namespace headrace
