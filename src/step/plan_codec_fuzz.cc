#include <cstdint>
#include <cstdlib>

#include "step/block_tables.h"
#include "step/plan_codec.h"

using namespace headrace;

/// A plan that decodes must encode to the same bytes, and a stage must survive it.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data), size);
  const Result<StepPlan> plan = decode_plan(bytes);
  if (!plan) return 0;
  std::vector<std::byte> again;
  encode_plan(plan.value(), again);
  if (again.size() != size || !std::equal(again.begin(), again.end(), bytes.begin())) std::abort();
  BlockTables tables({.num_groups = 2,
                      .group_blocks = {8, 4},
                      .block_tokens = 16,
                      .vocab_size = 100,
                      .max_tokens = 64,
                      .max_seq_len = 128});
  if (tables.apply(plan.value())) {
    for (const PlanRow& row : plan.value().rows) (void)tables.table(row.sequence, 1);
  }
  return 0;
}
