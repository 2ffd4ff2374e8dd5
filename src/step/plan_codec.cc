#include "step/plan_codec.h"

#include "base/byte_reader.h"

namespace headrace {
namespace {

constexpr size_t kRowBytes = 8 + 4 + 4 + 4;
constexpr size_t kChangeBytes = 8 + 4 + 4 + 4;  // with no blocks
constexpr size_t kCopyBytes = 4 + 4 + 4;

PlanRow take_row(ByteReader& in) {
  PlanRow row;
  row.sequence = SequenceId{in.take<uint64_t>()};
  row.first_pos = in.take<int32_t>();
  row.num_tokens = in.take<int32_t>();
  row.num_outputs = in.take<int32_t>();
  return row;
}

TableChange take_change(ByteReader& in) {
  TableChange change;
  change.sequence = SequenceId{in.take<uint64_t>()};
  change.group = in.take<int32_t>();
  change.base_blocks = in.take<int32_t>();
  const size_t blocks = in.take_count(sizeof(int32_t));
  change.blocks.reserve(blocks);
  for (size_t i = 0; i < blocks; ++i) change.blocks.push_back(BlockId{in.take<int32_t>()});
  return change;
}

BlockCopy take_copy(ByteReader& in) {
  BlockCopy copy;
  copy.group = in.take<int32_t>();
  copy.from = BlockId{in.take<int32_t>()};
  copy.to = BlockId{in.take<int32_t>()};
  return copy;
}

}  // namespace

void encode_plan(const StepPlan& plan, std::vector<std::byte>& out) {
  append_le(out, kPlanVersion);
  append_le(out, uint16_t{0});
  append_le(out, raw(plan.epoch));
  append_le(out, raw(plan.step_id));
  append_count(out, plan.rows.size());
  for (const PlanRow& row : plan.rows) {
    append_le(out, raw(row.sequence));
    append_le(out, row.first_pos);
    append_le(out, row.num_tokens);
    append_le(out, row.num_outputs);
  }
  append_count(out, plan.tokens.size());
  for (const TokenId token : plan.tokens) append_le(out, token);
  append_count(out, plan.table_changes.size());
  for (const TableChange& change : plan.table_changes) {
    append_le(out, raw(change.sequence));
    append_le(out, change.group);
    append_le(out, change.base_blocks);
    append_count(out, change.blocks.size());
    for (const BlockId block : change.blocks) append_le(out, raw(block));
  }
  append_count(out, plan.retired.size());
  for (const SequenceId sequence : plan.retired) append_le(out, raw(sequence));
  append_count(out, plan.copies.size());
  for (const BlockCopy& copy : plan.copies) {
    append_le(out, copy.group);
    append_le(out, raw(copy.from));
    append_le(out, raw(copy.to));
  }
}

Result<StepPlan> decode_plan(std::span<const std::byte> bytes) {
  ByteReader in(bytes);
  StepPlan plan;
  const uint16_t version = in.take<uint16_t>();
  if (in.ok() && version != kPlanVersion) {
    return Error(ErrorCode::kUnsupported, cat("plan of version ", version, ", expected ", kPlanVersion));
  }
  const uint16_t zero = in.take<uint16_t>();
  if (zero != 0) return Error(ErrorCode::kCorrupt, cat("plan: padding is ", zero, ", expected 0"));
  plan.epoch = EpochId{in.take<uint32_t>()};
  plan.step_id = StepId{in.take<uint64_t>()};
  const size_t rows = in.take_count(kRowBytes);
  for (size_t i = 0; i < rows; ++i) plan.rows.push_back(take_row(in));
  const size_t tokens = in.take_count(sizeof(TokenId));
  for (size_t i = 0; i < tokens; ++i) plan.tokens.push_back(in.take<TokenId>());
  const size_t changes = in.take_count(kChangeBytes);
  for (size_t i = 0; i < changes && in.ok(); ++i) plan.table_changes.push_back(take_change(in));
  const size_t retired = in.take_count(sizeof(uint64_t));
  for (size_t i = 0; i < retired; ++i) plan.retired.push_back(SequenceId{in.take<uint64_t>()});
  const size_t copies = in.take_count(kCopyBytes);
  for (size_t i = 0; i < copies; ++i) plan.copies.push_back(take_copy(in));
  if (!in.ok())
    return Error(ErrorCode::kCorrupt, cat("plan: cut short or a count too large, ", bytes.size(), " bytes"));
  if (in.left() != 0) return Error(ErrorCode::kCorrupt, cat("plan: ", in.left(), " bytes too many"));
  return plan;
}

}  // namespace headrace
