#include "backend/cpu/cpu_backend.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <ctime>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "backend/cpu/cpu_kernels.h"
#include "backend/cpu/op_cost.h"
#include "base/error.h"

namespace headrace {
namespace {

// Every kernel of this build reproduces its known answers: what is chosen is the best that its table lists.
TEST(CpuBackend, ChoosesTheBestOfEachTable) {
  for (const Isa isa : kAllIsas) {
    if (!machine_has(isa)) continue;
    const std::clock_t start = std::clock();
    const CpuKernels kernels = choose_cpu_kernels(isa, {});
    std::printf("%s: known answers in %.1f ms of processor time\n", std::string(isa_name(isa)).c_str(),
                1e3 * static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC);
    EXPECT_EQ(kernels.rms_norm, kRmsNorm.best(isa).fn);
    EXPECT_EQ(kernels.embed, kEmbed.best(isa).fn);
    for (const DType dtype : kKvDTypes) {
      EXPECT_EQ(kernels.attention[static_cast<size_t>(dtype)], attention_table(dtype).best(isa).fn);
    }
    EXPECT_EQ(kernels.quantize[static_cast<size_t>(ActForm::kQ8x256)], kQuantizeQ8x256.best(isa).fn);
    for (const DType dtype : {DType::kF32, DType::kBF16, DType::kQ4_0, DType::kQ4_K, DType::kQ6_K, DType::kIQ4_XS}) {
      for (const WeightLayout layout : kAllWeightLayouts) {
        const OpTable<MatmulFn>* const table = matmul_table(dtype, layout);
        const MatmulFn chosen = kernels.matmul[static_cast<size_t>(dtype)][static_cast<size_t>(layout)][0].fn;
        EXPECT_EQ(chosen, table != nullptr ? table->best(isa).fn : nullptr) << dtype_name(dtype);
      }
    }
  }
}

TEST(CpuBackend, NamesTheKernelOfEachOperatorOnce) {
  ComputePool pool(1);
  const std::unique_ptr<Backend> backend = make_cpu_backend(pool, Isa::kRef);
  std::map<std::string, int> ops;
  for (const ChosenKernel& kernel : backend->chosen_kernels()) {
    EXPECT_EQ(kernel.variant, "ref") << kernel.op;
    EXPECT_EQ(++ops[kernel.op], 1) << kernel.op;
  }
  EXPECT_EQ(ops.count("matmul Q4_K interleaved16"), 1u);
  EXPECT_EQ(ops.count("matmul F32 rows"), 1u);
}

TEST(CpuBackend, MemoryIsTheHostsOwn) {
  ComputePool pool(1);
  const std::unique_ptr<Backend> backend = make_cpu_backend(pool, Isa::kRef);
  EXPECT_FALSE(backend->has_matmul(DType::kF64, WeightLayout::kRows));
  DeviceBuffer buffer(*backend, int64_t{2} << 20);
  EXPECT_EQ(backend->host_view(buffer.data()), buffer.data());
  EXPECT_THROW((void)backend->allocate(int64_t{1} << 60), Error);
}

TEST(OpCost, OneRowOfANormStaysWithTheCallerAndAProjectionIsSplit) {
  EXPECT_GT(range_grain(RmsNormArgs{.rows = 1, .dim = 960}), 1);
  MatmulArgs projection;
  projection.w.n = 960;
  projection.w.k = 960;
  projection.x.rows = 1;
  EXPECT_LT(2 * range_grain(projection), op_items(projection));
  projection.x.rows = 512;
  EXPECT_EQ(range_grain(projection), 1);
}

TEST(OpCost, AttentionGoesByThePositionsThatAreSeen) {
  std::vector<int32_t> positions{9, 9, 9, 9};
  AttentionArgs args{.layout = {.kv_heads = 3, .head_dim = 64, .v_head_dim = 64}, .heads = 9};
  args.positions = positions.data();
  args.rows = 4;
  EXPECT_GT(range_grain(args), 4);
  positions.assign(4, 4000);
  EXPECT_EQ(range_grain(args), 1);
  args.window = 10;
  EXPECT_GT(range_grain(args), 4);
}

}  // namespace
}  // namespace headrace
