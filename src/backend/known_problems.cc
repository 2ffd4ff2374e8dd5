#include "backend/known_problems.h"

#include <algorithm>
#include <array>
#include <bit>
#include <vector>

#include "base/check.h"
#include "base/half.h"
#include "quant/format.h"

namespace headrace {
namespace {

constexpr std::byte kUnwritten{0x5a};

/// splitmix64: the same inputs on every machine.
class Generator {
 public:
  explicit Generator(uint64_t seed) : state_(seed) {}
  uint64_t next() noexcept {
    uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  /// In [-4, 4), with an uneven spread: most near 0, as activations and weights are.
  float value() noexcept {
    const auto uniform = static_cast<float>(static_cast<int64_t>(next() >> 40) - (1 << 23)) / (1 << 23);
    return 4 * uniform * uniform * uniform;
  }
  std::vector<float> values(int64_t count) {
    std::vector<float> out(static_cast<size_t>(count));
    for (float& v : out) v = value();
    return out;
  }

 private:
  uint64_t state_;
};

template <class T>
T* place(ProblemMemory& memory, const std::vector<T>& values) {
  return reinterpret_cast<T*>(memory.place(std::as_bytes(std::span(values))));
}

template <class Args>
KnownProblem<Args> with_output(ProblemMemory& memory, int64_t bytes) {
  const std::vector<std::byte> unwritten(static_cast<size_t>(bytes), kUnwritten);
  return {.args = {}, .output = memory.place(unwritten), .output_bytes = bytes};
}

template <class Args>
float* output_f32(const KnownProblem<Args>& problem) {
  return reinterpret_cast<float*>(problem.output);
}

constexpr int64_t kFloat = sizeof(float);

/// Zeroed host bytes, 64-byte aligned, as kernels and packing want them.
class AlignedBytes {
 public:
  explicit AlignedBytes(int64_t size) : storage_(static_cast<size_t>(size) + 63), size_(static_cast<size_t>(size)) {}
  [[nodiscard]] std::span<std::byte> span() noexcept {
    const size_t skip = (64 - reinterpret_cast<uintptr_t>(storage_.data()) % 64) % 64;
    return std::span(storage_).subspan(skip, size_);
  }

 private:
  std::vector<std::byte> storage_;
  size_t size_;
};

/// One row of weights as a file holds it.
void fill_row(DType dtype, Generator& random, int64_t k, std::span<std::byte> row) {
  if (const BlockFormat* const format = find_format(dtype); format->encode != nullptr) {
    format->encode(random.values(k).data(), k, row.data());
    return;
  }
  // No encoder: any bytes are blocks. Without the top bits all scales, f16 or e4m3 or e8m0, are finite.
  for (std::byte& b : row) b = static_cast<std::byte>(random.next() & 0x3fu);
}

WeightView weights(ProblemMemory& memory, DType dtype, WeightLayout layout, int64_t n, int64_t k) {
  Generator random(static_cast<uint64_t>(dtype) + 1);
  const auto row_bytes = static_cast<size_t>(tensor_bytes(dtype, {k}));
  std::vector<std::byte> rows(static_cast<size_t>(n) * row_bytes);
  for (size_t i = 0; i < static_cast<size_t>(n); ++i) {
    fill_row(dtype, random, k, std::span(rows).subspan(i * row_bytes, row_bytes));
  }
  AlignedBytes packed(packed_bytes(dtype, layout, n, k));
  pack_weights(dtype, layout, rows, n, k, 0, n, packed.span().data());
  return {.dtype = dtype, .layout = layout, .n = n, .k = k, .data = memory.place(packed.span())};
}

/// A width for weights of a type: ragged where blocks allow it, two super-blocks at least where products have them.
int64_t weight_width(DType dtype, WeightLayout layout, int64_t widths) {
  const int64_t block = dtype_info(dtype).block_elems;
  if (block == 1) return 77 * widths;
  if (block <= 64) return 96 * widths / block * block;
  return (layout == WeightLayout::kRows ? 1 : 2) * block * widths;
}

ActView activations(ProblemMemory& memory, ActForm form, int64_t rows, int64_t k) {
  std::vector<float> x = Generator(99).values(rows * k);
  for (size_t i = 3; i < x.size(); i += 97) x[i] *= 100;  // outliers of the rounded forms
  ActView placed{.form = form, .data = nullptr, .rows = rows, .k = k};
  if (form == ActForm::kF32) {
    // Records are 64-byte aligned: rows of f32 may have padding between them.
    const int64_t record = act_row_bytes(form, k) / kFloat;
    std::vector<float> padded(static_cast<size_t>(rows * record));
    for (int64_t r = 0; r < rows; ++r) std::copy_n(x.begin() + r * k, k, padded.begin() + r * record);
    placed.data = reinterpret_cast<std::byte*>(place(memory, padded));
    return placed;
  }
  AlignedBytes records(rows * act_row_bytes(form, k));
  placed.data = records.span().data();
  const OpTable<QuantizeFn>& table = *quantize_table(form);
  table.reference().fn({.x = x.data(), .y = placed}, {0, rows});
  placed.data = memory.place(records.span());
  return placed;
}

std::vector<int32_t> ramp(int64_t count, int32_t first, int32_t step) {
  std::vector<int32_t> out(static_cast<size_t>(count));
  for (size_t i = 0; i < out.size(); ++i) out[i] = first + step * static_cast<int32_t>(i);
  return out;
}

/// A slab of blocks filled with finite values.
std::vector<std::byte> slab(const KvLayout& layout, int64_t blocks) {
  Generator random(7);
  std::vector<std::byte> bytes(static_cast<size_t>(blocks * kv_block_bytes(layout)));
  const int64_t rows = blocks * kBlockTokens;
  const std::vector<float> k = random.values(rows * layout.kv_heads * layout.head_dim);
  const std::vector<float> v = random.values(rows * layout.kv_heads * layout.v_head_dim);
  const std::vector<int32_t> slots = ramp(rows, 0, 1);
  kKvWrite.reference().fn(
      {.layout = layout, .k = k.data(), .v = v.data(), .slots = slots.data(), .slab = bytes.data(), .rows = rows},
      {0, rows});
  return bytes;
}

}  // namespace

KnownProblem<EmbedArgs> embed_problem(ProblemMemory& memory, ProblemSize size, DType dtype, WeightLayout layout) {
  constexpr TokenId kVocab = 21;
  const int64_t k = weight_width(dtype, layout, size.widths);
  auto problem = with_output<EmbedArgs>(memory, size.rows * k * kFloat);
  std::vector<TokenId> tokens = ramp(size.rows, 3, 8);
  for (TokenId& t : tokens) t %= kVocab;
  problem.args = {.table = weights(memory, dtype, layout, kVocab, k),
                  .tokens = place(memory, tokens),
                  .y = output_f32(problem),
                  .rows = size.rows,
                  .scale = 1.7f};
  return problem;
}

KnownProblem<RmsNormArgs> rms_norm_problem(ProblemMemory& memory, ProblemSize size) {
  const int64_t dim = 77 * size.widths;
  Generator random(1);
  auto problem = with_output<RmsNormArgs>(memory, size.rows * dim * kFloat);
  problem.args = {.x = place(memory, random.values(size.rows * dim)),
                  .w = place(memory, random.values(dim)),
                  .y = output_f32(problem),
                  .rows = size.rows,
                  .dim = dim,
                  .eps = 1e-5f};
  return problem;
}

KnownProblem<QuantizeArgs> quantize_problem(ProblemMemory& memory, ProblemSize size, ActForm form) {
  const int64_t k = (form == ActForm::kBf16 ? 77 : form == ActForm::kQ8x32 ? 96 : 512) * size.widths;
  auto problem = with_output<QuantizeArgs>(memory, size.rows * act_row_bytes(form, k));
  problem.args = {.x = place(memory, Generator(2).values(size.rows * k)),
                  .y = {.form = form, .data = problem.output, .rows = size.rows, .k = k}};
  return problem;
}

KnownProblem<MatmulArgs> matmul_problem(ProblemMemory& memory, ProblemSize size, DType dtype, WeightLayout layout) {
  const int64_t n = 19 * size.widths;
  const int64_t k = weight_width(dtype, layout, size.widths);
  const ActForm form = layout_recipe(layout, dtype)->act;
  const int64_t stride = n + 3;
  auto problem = with_output<MatmulArgs>(memory, size.rows * stride * kFloat);
  problem.args = {.x = activations(memory, form, size.rows, k),
                  .w = weights(memory, dtype, layout, n, k),
                  .bias = place(memory, Generator(3).values(n)),
                  .y = output_f32(problem),
                  .y_stride = stride};
  return problem;
}

KnownProblem<AddArgs> add_problem(ProblemMemory& memory, ProblemSize size) {
  const int64_t dim = 77 * size.widths;
  Generator random(4);
  auto problem = with_output<AddArgs>(memory, size.rows * dim * kFloat);
  problem.args = {.a = place(memory, random.values(size.rows * dim)),
                  .b = place(memory, random.values(size.rows * dim)),
                  .y = output_f32(problem),
                  .rows = size.rows,
                  .dim = dim};
  return problem;
}

KnownProblem<SiluMulArgs> silu_mul_problem(ProblemMemory& memory, ProblemSize size) {
  const int64_t dim = 77 * size.widths;
  Generator random(5);
  std::vector<float> gate = random.values(size.rows * dim);
  for (float& g : gate) g *= 30;  // far enough for exp to reach its ends
  auto problem = with_output<SiluMulArgs>(memory, size.rows * dim * kFloat);
  problem.args = {.gate = place(memory, gate),
                  .up = place(memory, random.values(size.rows * dim)),
                  .y = output_f32(problem),
                  .rows = size.rows,
                  .dim = dim};
  return problem;
}

KnownProblem<GatherRowsArgs> gather_rows_problem(ProblemMemory& memory, ProblemSize size) {
  const int64_t dim = 77 * size.widths;
  auto problem = with_output<GatherRowsArgs>(memory, size.rows * dim * kFloat);
  problem.args = {.x = place(memory, Generator(6).values(size.rows * dim)),
                  .index = place(memory, ramp(size.rows, static_cast<int32_t>(size.rows) - 1, -1)),
                  .y = output_f32(problem),
                  .rows = size.rows,
                  .dim = dim};
  return problem;
}

KnownProblem<RopeTableArgs> rope_table_problem(ProblemMemory& memory, ProblemSize size) {
  const int64_t half = 11 * size.widths;
  std::vector<float> inv_freq(static_cast<size_t>(half));
  float f = 1.0f;
  for (float& v : inv_freq) {
    v = f;
    f *= 0.4375f;
  }
  auto problem = with_output<RopeTableArgs>(memory, size.rows * 2 * half * kFloat);
  problem.args = {.positions = place(memory, ramp(size.rows, 0, 30011)),
                  .inv_freq = place(memory, inv_freq),
                  .cos_sin = output_f32(problem),
                  .rows = size.rows,
                  .half = half,
                  .scale = 1.25f};
  return problem;
}

KnownProblem<RopeArgs> rope_problem(ProblemMemory& memory, ProblemSize size, RopeLayout layout) {
  constexpr int64_t kHeads = 3;
  const int64_t half = 11 * size.widths;
  const int64_t head_dim = 2 * half + 6;  // the rest of a head is not rotated
  Generator random(8);
  const std::vector<float> x = random.values(size.rows * kHeads * head_dim);
  KnownProblem<RopeArgs> problem;
  problem.output = reinterpret_cast<std::byte*>(place(memory, x));
  problem.output_bytes = std::ssize(x) * kFloat;
  problem.args = {.x = output_f32(problem),
                  .cos_sin = place(memory, random.values(size.rows * 2 * half)),
                  .rows = size.rows,
                  .heads = kHeads,
                  .head_dim = head_dim,
                  .half = half,
                  .layout = layout};
  return problem;
}

KnownProblem<KvWriteArgs> kv_write_problem(ProblemMemory& memory, ProblemSize size, DType kv_dtype) {
  const KvLayout layout{.dtype = kv_dtype,
                        .kv_heads = 2,
                        .head_dim = static_cast<int32_t>(20 * size.widths),
                        .v_head_dim = static_cast<int32_t>(12 * size.widths)};
  const int64_t blocks = (size.rows * 3 + kBlockTokens) / kBlockTokens + 1;
  Generator random(9);
  auto problem = with_output<KvWriteArgs>(memory, blocks * kv_block_bytes(layout));
  problem.args = {.layout = layout,
                  .k = place(memory, random.values(size.rows * layout.kv_heads * layout.head_dim)),
                  .v = place(memory, random.values(size.rows * layout.kv_heads * layout.v_head_dim)),
                  .slots = place(memory, ramp(size.rows, 2, 3)),
                  .slab = problem.output,
                  .rows = size.rows};
  return problem;
}

KnownProblem<AttentionArgs> attention_problem(ProblemMemory& memory, ProblemSize size, DType kv_dtype, int32_t window) {
  const KvLayout layout{.dtype = kv_dtype,
                        .kv_heads = 2,
                        .head_dim = static_cast<int32_t>(32 * size.widths),
                        .v_head_dim = static_cast<int32_t>(12 * size.widths)};
  constexpr int32_t kHeads = 4;
  constexpr int32_t kBlocks = 5;
  constexpr int32_t kLastPos = 530;
  // All rows share one table of blocks, which come again and again: the slab stays small.
  std::vector<int32_t> table = ramp(kLastPos / kBlockTokens + 1, 0, 3);
  for (int32_t& block : table) block %= kBlocks;
  // A row that sees little, then rows that follow each other to the last position.
  std::vector<int32_t> positions = ramp(size.rows, kLastPos + 1 - static_cast<int32_t>(size.rows), 1);
  for (int32_t& pos : positions) pos = std::max(pos, 0);
  if (size.rows > 1) positions.front() = 3;
  auto problem = with_output<AttentionArgs>(memory, size.rows * kHeads * layout.v_head_dim * kFloat);
  problem.args = {.layout = layout,
                  .q = place(memory, Generator(10).values(size.rows * kHeads * layout.head_dim)),
                  .slab = memory.place(slab(layout, kBlocks)),
                  .block_table = place(memory, table),
                  .table_begin = place(memory, std::vector<int32_t>(static_cast<size_t>(size.rows), 0)),
                  .positions = place(memory, positions),
                  .out = output_f32(problem),
                  .rows = size.rows,
                  .heads = kHeads,
                  .window = window,
                  .scale = 0.25f};
  return problem;
}

}  // namespace headrace
