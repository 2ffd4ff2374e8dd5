#include "ops/attention.h"

#include <fmt/format.h>

#include <numeric>
#include <optional>

#include "base/half.h"
#include "ops/op_test.h"

namespace headrace {
namespace {

constexpr double kUnit = 0x1p-24;  // largest relative error of a rounding

struct Shape {
  int32_t heads = 4;
  int32_t kv_heads = 2;
  int32_t head_dim = 64;
  int32_t v_head_dim = 64;
  int32_t window = 0;
  std::vector<int32_t> positions;  ///< one row each, each a sequence of its own
  float size = 1;                  ///< of keys and queries
  [[nodiscard]] std::string text() const {
    return cat(heads, "/", kv_heads, " heads, dim ", head_dim, "/", v_head_dim, ", window ", window, ", positions ",
               fmt::format("{}", fmt::join(positions, " ")));
  }
};

/// Queries, and a cache in which every place that must not be read holds NaN, in blocks of random order; table entries
/// before the window name no block.
class Problem {
 public:
  Problem(DType dtype, const Shape& shape, uint64_t seed)
      : shape_(shape),
        layout_{dtype, shape.kv_heads, shape.head_dim, shape.v_head_dim},
        rows_(static_cast<int64_t>(shape.positions.size())),
        q_(random_rows({rows_, int64_t{shape.heads} * shape.head_dim, 1, -shape.size, shape.size, 0, seed})) {
    int32_t num_blocks = 0;
    for (int32_t pos : shape.positions) {
      begins_.push_back(num_blocks);
      num_blocks += pos / kBlockTokens + 1;
    }
    table_.resize(static_cast<size_t>(num_blocks));
    std::iota(table_.begin(), table_.end(), 0);
    TestRandom random(seed + 1);
    for (size_t i = table_.size(); i > 1; --i) {
      std::swap(table_[i - 1], table_[static_cast<size_t>(random.below(static_cast<int64_t>(i)))]);
    }
    slab_.emplace(num_blocks * kv_block_bytes(layout_));
    std::memset(slab_->data(), 0xff, slab_->span().size());  // NaN in f32 and in f16
    for (int64_t row = 0; row < rows_; ++row) write_visible(row, random);
  }

  [[nodiscard]] AttentionArgs args(float* out) const {
    return {layout_, q_.data(), slab_->data(), table_.data(), begins_.data(), shape_.positions.data(),
            out,     rows_,     shape_.heads,  shape_.window, scale()};
  }
  [[nodiscard]] Rows run(AttentionFn fn) const { return run(fn, {{0, rows_ * shape_.kv_heads}}); }
  [[nodiscard]] Rows run(AttentionFn fn, const std::vector<RowRange>& ranges) const {
    Rows out(rows_, int64_t{shape_.heads} * shape_.v_head_dim, 3, 77.0f);
    for (RowRange range : ranges) fn(args(out.data()), range);
    return out;
  }
  [[nodiscard]] int64_t num_items() const { return rows_ * shape_.kv_heads; }

  /// The formula in double, and a bound on the distance of any evaluation by the recipe.
  struct Exact {
    std::vector<double> out, bound;
  };
  [[nodiscard]] Exact exact() const {
    Exact result;
    for (int64_t row = 0; row < rows_; ++row) {
      for (int64_t h = 0; h < shape_.heads; ++h) exact_head(row, h, result);
    }
    return result;
  }
  /// Puts `value` into component i of the key (or value) at a position of row 0, KV head 0.
  void poke(bool key, int64_t token_pos, int64_t i, float value) { store(index(0, token_pos, 0, key, i), value); }

 private:
  [[nodiscard]] float scale() const { return 1.0f / std::sqrt(static_cast<float>(shape_.head_dim)); }
  [[nodiscard]] int64_t first(int64_t row) const {
    const int64_t pos = shape_.positions[static_cast<size_t>(row)];
    return shape_.window > 0 ? std::max<int64_t>(0, pos - shape_.window + 1) : 0;
  }
  [[nodiscard]] int64_t index(int64_t row, int64_t t, int64_t g, bool key, int64_t i) const {
    const int64_t block = table_[static_cast<size_t>(begins_[static_cast<size_t>(row)] + t / kBlockTokens)];
    const int64_t head = block * shape_.kv_heads + g;
    const int64_t base = head * kBlockTokens * (shape_.head_dim + shape_.v_head_dim);
    const int64_t place = t % kBlockTokens;
    return base + (key ? i * kBlockTokens + place : kBlockTokens * shape_.head_dim + place * shape_.v_head_dim + i);
  }
  void store(int64_t element, float value) {
    if (layout_.dtype == DType::kF16) {
      const uint16_t half = f32_to_f16(value);
      std::memcpy(slab_->data() + element * 2, &half, 2);
    } else {
      std::memcpy(slab_->data() + element * 4, &value, 4);
    }
  }
  [[nodiscard]] double load(int64_t element) const {
    if (layout_.dtype == DType::kF16) {
      uint16_t half;
      std::memcpy(&half, slab_->data() + element * 2, 2);
      return f16_to_f32(half);
    }
    float value;
    std::memcpy(&value, slab_->data() + element * 4, 4);
    return value;
  }
  void write_visible(int64_t row, TestRandom& random) {
    const int64_t pos = shape_.positions[static_cast<size_t>(row)];
    for (int64_t t = first(row); t <= pos; ++t) {
      for (int64_t g = 0; g < shape_.kv_heads; ++g) {
        for (int64_t i = 0; i < shape_.head_dim; ++i) {
          store(index(row, t, g, true, i), random.uniform(-shape_.size, shape_.size));
        }
        for (int64_t i = 0; i < shape_.v_head_dim; ++i) store(index(row, t, g, false, i), random.uniform());
      }
    }
    for (int64_t b = 0; b < first(row) / kBlockTokens; ++b) {
      table_[static_cast<size_t>(begins_[static_cast<size_t>(row)] + b)] = -2000000000;
    }
  }
  void exact_head(int64_t row, int64_t h, Exact& result) const {
    const int64_t pos = shape_.positions[static_cast<size_t>(row)];
    const int64_t g = h / (shape_.heads / shape_.kv_heads);
    const float* q = q_.row(row) + h * shape_.head_dim;
    std::vector<double> s;
    double magnitude = 0;  // largest scale * sum |q k|
    for (int64_t t = first(row); t <= pos; ++t) {
      double dot = 0, sizes = 0;
      for (int64_t i = 0; i < shape_.head_dim; ++i) {
        const double product = static_cast<double>(q[i]) * load(index(row, t, g, true, i));
        dot += product;
        sizes += std::abs(product);
      }
      s.push_back(static_cast<double>(scale()) * dot);
      magnitude = std::max(magnitude, static_cast<double>(scale()) * sizes);
    }
    const double max = *std::max_element(s.begin(), s.end());
    const double range = max - *std::min_element(s.begin(), s.end());
    double sum = 0;
    for (double& x : s) sum += (x = std::exp(x - max));
    // Relative error of a weight p / L. Scores: head_dim fused steps and the scale. p = exp(s - m): twice the error of
    // a score, the rounding of s - m (at most `range`), 2 units of exp. In L: 512 / 16 chain steps and 4 of the tree;
    // each join two exponentials as above and 3 roundings. O: 512 chain steps, joins the same; then the division.
    // Numerator and denominator each carry the error of the weights.
    const double chunks = static_cast<double>(pos / kAttentionChunk + 1);
    const double weight = 2 * (shape_.head_dim + 1) * magnitude + range + 2;
    const double joins = chunks * (2 * weight + 3);
    const double relative = kUnit * (2 * weight + 36 + 512 + 2 * joins + 1) * 1.01;
    for (int64_t i = 0; i < shape_.v_head_dim; ++i) {
      double out = 0, sizes = 0;
      for (int64_t t = first(row); t <= pos; ++t) {
        const double p = s[static_cast<size_t>(t - first(row))] / sum;
        const double v = load(index(row, t, g, false, i));
        out += p * v;
        sizes += p * std::abs(v);
      }
      result.out.push_back(out);
      result.bound.push_back(relative * sizes);
    }
  }

  Shape shape_;
  KvLayout layout_;
  int64_t rows_;
  Rows q_;
  std::vector<int32_t> begins_, table_;
  std::optional<AlignedBytes> slab_;
};

std::vector<Shape> awkward_shapes() {
  std::vector<Shape> shapes;
  for (int32_t group : {1, 2, 3, 4, 5, 7, 8, 16}) {
    shapes.push_back({.heads = 2 * group, .kv_heads = 2, .head_dim = 24, .v_head_dim = 24, .positions = {0, 37, 600}});
  }
  for (int32_t dim : {1, 3, 5, 8, 16, 20, 33, 64, 80, 96, 128, 144}) {
    shapes.push_back({.heads = 5, .kv_heads = 1, .head_dim = dim, .v_head_dim = dim, .positions = {16, 531}});
    shapes.push_back({.heads = 4, .kv_heads = 2, .head_dim = dim, .v_head_dim = 145 - dim, .positions = {20, 140}});
    shapes.push_back({.heads = 3, .kv_heads = 3, .head_dim = 7, .v_head_dim = dim, .positions = {63}});
  }
  for (int32_t window : {0, 1, 2, 15, 16, 17, 511, 512, 513, 600}) {
    shapes.push_back({.heads = 3,
                      .kv_heads = 1,
                      .head_dim = 20,
                      .v_head_dim = 20,
                      .window = window,
                      .positions = {0, 14, 15, 16, 17, 511, 512, 513, 527, 1023, 1024, 1500}});
  }
  shapes.push_back({.heads = 70, .kv_heads = 1, .head_dim = 8, .v_head_dim = 8, .positions = {5, 530}});
  shapes.push_back({.heads = 4, .kv_heads = 1, .head_dim = 64, .v_head_dim = 64, .positions = {1100}, .size = 30});
  return shapes;
}

void matches_reference(DType dtype, AttentionFn fn, AttentionFn reference, const CaseLabel& label) {
  for (const Shape& shape : awkward_shapes()) {
    const Problem problem(dtype, shape, label.seed);
    CaseLabel here = label;
    here.shape = shape.text();
    expect_bit_equal(here, problem.run(fn).span(), problem.run(reference).span());
  }
}
OP_TEST(AttentionF32, MatchesReference, kAttentionF32) { matches_reference(DType::kF32, fn(), reference(), label("")); }
OP_TEST(AttentionF16, MatchesReference, kAttentionF16) { matches_reference(DType::kF16, fn(), reference(), label("")); }

void matches_formula(DType dtype, AttentionFn fn, const CaseLabel& label) {
  for (const Shape& shape : awkward_shapes()) {
    const Problem problem(dtype, shape, label.seed + 2);
    const Problem::Exact want = problem.exact();
    CaseLabel here = label;
    here.shape = shape.text();
    expect_close(here, problem.run(fn).span(), want.out, [&](size_t i) { return want.bound[i]; });
  }
}
OP_TEST(AttentionF32, MatchesFormula, kAttentionF32) { matches_formula(DType::kF32, fn(), label("")); }
OP_TEST(AttentionF16, MatchesFormula, kAttentionF16) { matches_formula(DType::kF16, fn(), label("")); }

OP_TEST(AttentionF16, AnySplitAndOrderOfItems, kAttentionF16) {
  const Shape shape{.heads = 9, .kv_heads = 3, .head_dim = 16, .v_head_dim = 16, .positions = {700, 3, 40, 512}};
  const Problem problem(DType::kF16, shape, seed());
  const Rows whole = problem.run(reference());
  for (int64_t cut = 0; cut <= problem.num_items(); ++cut) {
    const Rows got = problem.run(fn(), {{cut, problem.num_items()}, {0, cut}});
    expect_bit_equal(label(cat("cut at ", cut)), got.span(), whole.span());
  }
  // Items that nobody asked for are not written.
  const Rows part = problem.run(fn(), {{4, 5}});  // row 1, KV head 1
  for (int64_t i = 0; i < part.rows() * part.dim(); ++i) {
    const bool asked = i / part.dim() == 1 && i % part.dim() / (3 * 16) == 1;
    EXPECT_EQ(part.data()[i] != 77.0f, asked) << i;
  }
}

/// Infinities and NaN among the row's own keys and values: the same floats on every instruction set, in this head only.
void special_values(DType dtype, AttentionFn fn, AttentionFn reference, const CaseLabel& label) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const Shape shape{.heads = 4, .kv_heads = 2, .head_dim = 9, .v_head_dim = 9, .positions = {1040, 30}};
  const Rows before = Problem(dtype, shape, label.seed).run(reference);
  for (float value : {kInf, -kInf, std::numeric_limits<float>::quiet_NaN(), 60000.0f}) {
    for (bool key : {true, false}) {
      for (int64_t token_pos : {0, 511, 512, 1040}) {
        Problem problem(dtype, shape, label.seed);
        problem.poke(key, token_pos, 5, value);
        const Rows got = problem.run(fn), want = problem.run(reference);
        CaseLabel here = label;
        here.shape = cat(key ? "key " : "value ", value, " at ", token_pos);
        expect_bit_equal(here, got.span(), want.span());
        for (int64_t i = 2 * 9; i < 2 * 4 * 9; ++i) {
          ASSERT_EQ(got.data()[i], before.data()[i]) << case_text(here) << ": index " << i << " is of another KV head";
        }
        EXPECT_TRUE(!std::isnan(value) || std::isnan(got.data()[5])) << case_text(here);
      }
    }
  }
}
OP_TEST(AttentionF32, SpecialValues, kAttentionF32) { special_values(DType::kF32, fn(), reference(), label("")); }
OP_TEST(AttentionF16, SpecialValues, kAttentionF16) { special_values(DType::kF16, fn(), reference(), label("")); }

TEST(Attention, TableOfACacheType) {
  EXPECT_EQ(&attention_table(DType::kF16), &kAttentionF16);
  EXPECT_EQ(&attention_table(DType::kF32), &kAttentionF32);
}

}  // namespace
}  // namespace headrace
