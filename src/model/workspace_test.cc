#include "model/workspace.h"

#include <gtest/gtest.h>

#include "backend/cpu/cpu_backend.h"
#include "files/model_files.h"

namespace headrace {
namespace {

class WorkspaceTest : public testing::Test {
 protected:
  [[nodiscard]] StageWeights pack(const StageUnits& units, const WeightView* tied_table = nullptr) {
    return {*backend_, pool_, files_, spec_, Numerics::kPortable, units, {}, tied_table};
  }

  ComputePool pool_{1};
  std::unique_ptr<Backend> backend_ = make_cpu_backend(pool_, Isa::kRef);
  ModelFiles files_ = open_model(HR_TEST_DATA "/models/llama-tied-bf16");
  ArchSpec spec_ = make_arch_spec(files_);
};

TEST_F(WorkspaceTest, TakesWhatItSays) {
  for (const bool has_layers : {true, false}) {
    const Workspace work(*backend_, spec_, has_layers, 7);
    int64_t bytes = 0;
    for (const DeviceBuffer* one :
         {&work.x, &work.h, &work.q, &work.k, &work.v, &work.mixed, &work.gate, &work.up, &work.delta}) {
      bytes += one->bytes();
    }
    for (const DeviceBuffer& one : work.cos_sin) bytes += one.bytes();
    for (const DeviceBuffer& one : work.acts) bytes += one.bytes();
    EXPECT_EQ(bytes, 7 * workspace_token_bytes(spec_, has_layers));
  }
}

TEST_F(WorkspaceTest, StagesOfOneProcessHaveATiedMatrixOnce) {
  const int32_t end = spec_.num_layers();
  const StageWeights whole = pack(whole_model(spec_));
  const StageWeights first = pack({.embedding = true, .first_sublayer = 0, .end_sublayer = kSublayers * end});
  const StageUnits output{.first_sublayer = kSublayers * end, .end_sublayer = kSublayers * end, .output = true};
  const StageWeights tied = pack(output, &first.embedding());
  EXPECT_EQ(first.packed_bytes() + tied.packed_bytes(), whole.packed_bytes());
  EXPECT_EQ(tied.output().w.data, first.embedding().data);
  EXPECT_EQ(tied.output().w.layout, whole.output().w.layout);
  EXPECT_EQ(first.packed_bytes() + pack(output).packed_bytes(),
            whole.packed_bytes() + first.embedding().n * first.embedding().k * 2);
}

}  // namespace
}  // namespace headrace
