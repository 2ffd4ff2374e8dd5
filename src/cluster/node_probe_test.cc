#include "cluster/node_probe.h"

#include <gtest/gtest.h>

#include "arch/registry.h"
#include "backend/cpu/cpu_backend.h"

namespace headrace::cluster {
namespace {

TEST(NodeProbe, MeasuresLayerAndOutputByRows) {
  const ModelFiles files = open_model(std::string(HR_TEST_DATA) + "/models/mistral");  // with a window
  const ArchSpec spec = make_arch_spec(files);
  ComputePool pool(1);
  const auto backend = make_cpu_backend(pool, best_isa());
  SingleRank comm;
  const NodeCosts costs = probe_node({.files = files, .spec = spec, .backend = *backend, .pool = pool, .comm = comm});
  check_costs(costs, "here");
  ASSERT_GE(costs.at.size(), 2u);
  EXPECT_EQ(costs.at.front().rows, 1);
  const SublayerBytes bytes = model_units(spec, files, DType::kF16).sublayer_bytes(0, kSublayers);
  EXPECT_EQ(costs.probe_bytes.attention, bytes.attention);
  EXPECT_EQ(costs.probe_bytes.feed_forward, bytes.feed_forward);
  for (const UnitSeconds& at : costs.at) {
    EXPECT_GT(at.attention_seconds, 0);
    EXPECT_GE(at.feed_forward_seconds, 0);
    EXPECT_GT(at.output_seconds, 0);
  }
  EXPECT_GT(costs.layer_seconds(bytes, costs.at.back().rows), costs.layer_seconds(bytes, 1)) << "128 rows against one";
}

}  // namespace
}  // namespace headrace::cluster
