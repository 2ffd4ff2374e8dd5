#include "step/plan_codec.h"

#include "base/byte_order.h"

namespace headrace {
namespace {

template <class T>
void put(std::vector<std::byte>& out, T value) {
  out.resize(out.size() + sizeof(T));
  store_le(out.data() + out.size() - sizeof(T), value);
}

void put_count(std::vector<std::byte>& out, size_t n) { put(out, static_cast<uint32_t>(n)); }

/// Takes values from the front of the bytes; once it came to the end it gives zeros and ok() is false.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : rest_(bytes) {}
  [[nodiscard]] bool ok() const noexcept { return ok_; }
  [[nodiscard]] size_t left() const noexcept { return rest_.size(); }

  template <class T>
  T take() noexcept {
    if (rest_.size() < sizeof(T)) {
      ok_ = false;
      rest_ = {};
      return T{};
    }
    const T value = load_le<T>(rest_.data());
    rest_ = rest_.subspan(sizeof(T));
    return value;
  }

  /// A count of items of at least `item_bytes` each; 0 and not ok() where the bytes cannot hold them.
  size_t take_count(size_t item_bytes) noexcept {
    const uint32_t n = take<uint32_t>();
    if (n > rest_.size() / item_bytes) {
      ok_ = false;
      rest_ = {};
      return 0;
    }
    return n;
  }

 private:
  std::span<const std::byte> rest_;
  bool ok_ = true;
};

constexpr size_t kRowBytes = 8 + 4 + 4 + 4;
constexpr size_t kChangeBytes = 8 + 4 + 4 + 4;  // with no blocks
constexpr size_t kCopyBytes = 4 + 4 + 4;

PlanRow take_row(Reader& in) {
  PlanRow row;
  row.sequence = SequenceId{in.take<uint64_t>()};
  row.first_pos = in.take<int32_t>();
  row.num_tokens = in.take<int32_t>();
  row.num_outputs = in.take<int32_t>();
  return row;
}

TableChange take_change(Reader& in) {
  TableChange change;
  change.sequence = SequenceId{in.take<uint64_t>()};
  change.group = in.take<int32_t>();
  change.base_blocks = in.take<int32_t>();
  const size_t blocks = in.take_count(sizeof(int32_t));
  change.blocks.reserve(blocks);
  for (size_t i = 0; i < blocks; ++i) change.blocks.push_back(BlockId{in.take<int32_t>()});
  return change;
}

BlockCopy take_copy(Reader& in) {
  BlockCopy copy;
  copy.group = in.take<int32_t>();
  copy.from = BlockId{in.take<int32_t>()};
  copy.to = BlockId{in.take<int32_t>()};
  return copy;
}

}  // namespace

void encode_plan(const StepPlan& plan, std::vector<std::byte>& out) {
  put(out, kPlanVersion);
  put(out, uint16_t{0});
  put(out, raw(plan.epoch));
  put(out, raw(plan.step_id));
  put_count(out, plan.rows.size());
  for (const PlanRow& row : plan.rows) {
    put(out, raw(row.sequence));
    put(out, row.first_pos);
    put(out, row.num_tokens);
    put(out, row.num_outputs);
  }
  put_count(out, plan.tokens.size());
  for (const TokenId token : plan.tokens) put(out, token);
  put_count(out, plan.table_changes.size());
  for (const TableChange& change : plan.table_changes) {
    put(out, raw(change.sequence));
    put(out, change.group);
    put(out, change.base_blocks);
    put_count(out, change.blocks.size());
    for (const BlockId block : change.blocks) put(out, raw(block));
  }
  put_count(out, plan.retired.size());
  for (const SequenceId sequence : plan.retired) put(out, raw(sequence));
  put_count(out, plan.copies.size());
  for (const BlockCopy& copy : plan.copies) {
    put(out, copy.group);
    put(out, raw(copy.from));
    put(out, raw(copy.to));
  }
}

Result<StepPlan> decode_plan(std::span<const std::byte> bytes) {
  Reader in(bytes);
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
