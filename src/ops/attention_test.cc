#include "ops/attention.h"

#include <fmt/format.h>

#include <map>
#include <numeric>
#include <optional>

#include "base/half.h"
#include "base/test_walk.h"
#include "ops/op_test.h"

namespace headrace {
namespace {

constexpr double kUnit = 0x1p-24;  // largest relative error of a rounding

/// Rows of one sequence, at positions pos, pos + 1, ...
struct Run {
  int32_t pos = 0;
  int32_t rows = 1;
};

struct Shape {
  int32_t heads = 4;
  int32_t kv_heads = 2;
  int32_t head_dim = 64;
  int32_t v_head_dim = 64;
  int32_t window = 0;
  std::vector<Run> runs;
  float size = 1;  ///< of keys and queries
  [[nodiscard]] std::string text() const {
    std::string text =
        cat(heads, "/", kv_heads, " heads, dim ", head_dim, "/", v_head_dim, ", window ", window, ", at");
    for (const Run& run : runs) text += cat(" ", run.pos, "+", run.rows);
    return text;
  }
};

float decode(DType dtype, const std::byte* at) {
  if (dtype == DType::kF32) {
    float value;
    std::memcpy(&value, at, 4);
    return value;
  }
  if (dtype == DType::kI8) return static_cast<float>(static_cast<int8_t>(*at));
  uint16_t half;
  std::memcpy(&half, at, 2);
  return dtype == DType::kF16 ? f16_to_f32(half) : bf16_to_f32(half);
}
void encode(DType dtype, float value, std::byte* at) {
  if (dtype == DType::kF32) {
    std::memcpy(at, &value, 4);
  } else if (dtype == DType::kI8) {
    *at = static_cast<std::byte>(static_cast<int8_t>(std::nearbyint(value * 127)));
  } else {
    const uint16_t half = dtype == DType::kF16 ? f32_to_f16(value) : f32_to_bf16(value);
    std::memcpy(at, &half, 2);
  }
}

/// Queries, and a cache in which every place that must not be read holds NaN, in blocks of random order; table entries
/// before the window name no block. 8-bit codes are of numbers below 1, their scales around 1 / 127.
class Problem {
 public:
  Problem(DType dtype, const Shape& shape, uint64_t seed)
      : shape_(shape), layout_{dtype, shape.kv_heads, shape.head_dim, shape.v_head_dim} {
    int32_t num_blocks = 0;
    for (const Run& run : shape.runs) {
      for (int32_t i = 0; i < run.rows; ++i) {
        begins_.push_back(num_blocks);
        positions_.push_back(run.pos + i);
      }
      num_blocks += (run.pos + run.rows - 1) / kBlockTokens + 1;
    }
    rows_ = static_cast<int64_t>(positions_.size());
    q_.emplace(random_rows({rows_, int64_t{shape.heads} * shape.head_dim, 1, -shape.size, shape.size, 0, seed}));
    table_.resize(static_cast<size_t>(num_blocks));
    std::iota(table_.begin(), table_.end(), 0);
    TestRandom random(seed + 1);
    for (size_t i = table_.size(); i > 1; --i) {
      std::swap(table_[i - 1], table_[static_cast<size_t>(random.below(static_cast<int64_t>(i)))]);
    }
    slab_.emplace(num_blocks * kv_block_bytes(layout_));
    std::memset(slab_->data(), 0xff, slab_->span().size());  // NaN in every float type, and so are the scales
    int64_t row = 0;
    for (const Run& run : shape.runs) {
      write_visible(row, first(row), run.pos + run.rows, random);
      row += run.rows;
    }
  }

  [[nodiscard]] AttentionArgs args(float* out) const {
    return {layout_, q_->data(), slab_->data(), table_.data(), begins_.data(), positions_.data(),
            out,     rows_,      shape_.heads,  shape_.window, scale()};
  }
  [[nodiscard]] Rows run(AttentionFn fn) const { return run(fn, {{0, num_items()}}); }
  [[nodiscard]] Rows run(AttentionFn fn, const std::vector<RowRange>& ranges) const {
    Rows out(rows_, int64_t{shape_.heads} * shape_.v_head_dim, 3, 77.0f);
    for (RowRange range : ranges) fn(args(out.data()), range);
    return out;
  }
  [[nodiscard]] int64_t num_items() const { return rows_ * shape_.kv_heads; }
  [[nodiscard]] int32_t position(int64_t row) const { return positions_[static_cast<size_t>(row)]; }

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
  /// Puts `value` into component i of the key (or value) at a position of row 0's sequence, KV head 0; 8-bit: into the
  /// scale.
  void poke(bool key, int64_t token_pos, int64_t i, float value) {
    std::byte* part = part_of(0, token_pos, 0, key);
    const int64_t place = token_pos % kBlockTokens;
    if (layout_.dtype == DType::kI8) {
      std::memcpy(part + (key ? kv_key_bytes(layout_) : kv_value_bytes(layout_)) + place * 4, &value, 4);
    } else {
      encode(layout_.dtype, value, part + index(place, key, i) * kv_element_bytes(layout_.dtype));
    }
  }

 private:
  [[nodiscard]] float scale() const { return 1.0f / std::sqrt(static_cast<float>(shape_.head_dim)); }
  [[nodiscard]] int64_t first(int64_t row) const {
    return shape_.window > 0 ? std::max<int64_t>(0, position(row) - shape_.window + 1) : 0;
  }
  [[nodiscard]] int64_t index(int64_t place, bool key, int64_t i) const {
    return key ? kv_key_index(layout_, place, i) : kv_value_index(layout_, place, i);
  }
  [[nodiscard]] std::byte* part_of(int64_t row, int64_t t, int64_t g, bool key) const {
    const int64_t block = table_[static_cast<size_t>(begins_[static_cast<size_t>(row)] + t / kBlockTokens)];
    return slab_->data() + block * kv_block_bytes(layout_) + g * kv_head_bytes(layout_) +
           (key ? 0 : kv_value_offset(layout_));
  }
  [[nodiscard]] double load(int64_t row, int64_t t, int64_t g, bool key, int64_t i) const {
    const std::byte* part = part_of(row, t, g, key);
    const int64_t place = t % kBlockTokens;
    const double element = decode(layout_.dtype, part + index(place, key, i) * kv_element_bytes(layout_.dtype));
    if (layout_.dtype != DType::kI8) return element;
    return element * decode(DType::kF32, part + (key ? kv_key_bytes(layout_) : kv_value_bytes(layout_)) + place * 4);
  }
  void write_part(int64_t row, int64_t t, int64_t g, bool key, float size, TestRandom& random) {
    std::byte* part = part_of(row, t, g, key);
    const int64_t place = t % kBlockTokens, bytes = kv_element_bytes(layout_.dtype);
    const bool is_i8 = layout_.dtype == DType::kI8;
    const int64_t dim = key ? shape_.head_dim : shape_.v_head_dim;
    for (int64_t i = 0; i < dim; ++i) {
      encode(layout_.dtype, random.uniform() * (is_i8 ? 1 : size), part + index(place, key, i) * bytes);
    }
    if (key && layout_.dtype == DType::kBF16 && dim % 2 == 1)
      encode(DType::kBF16, 0, part + index(place, key, dim) * 2);
    if (is_i8) {
      const float of_codes = random.uniform(0.5f, 1.0f) * size / 127;
      std::memcpy(part + (key ? kv_key_bytes(layout_) : kv_value_bytes(layout_)) + place * 4, &of_codes, 4);
    }
  }
  void write_visible(int64_t row, int64_t begin, int64_t end, TestRandom& random) {
    for (int64_t t = begin; t < end; ++t) {
      for (int64_t g = 0; g < shape_.kv_heads; ++g) {
        write_part(row, t, g, true, shape_.size, random);
        write_part(row, t, g, false, 1, random);
      }
    }
    for (int64_t b = 0; b < begin / kBlockTokens; ++b) {
      table_[static_cast<size_t>(begins_[static_cast<size_t>(row)] + b)] = -2000000000;
    }
  }
  void exact_head(int64_t row, int64_t h, Exact& result) const {
    const int64_t pos = position(row);
    const int64_t g = h / (shape_.heads / shape_.kv_heads);
    const bool is_bf16 = layout_.dtype == DType::kBF16;
    std::vector<float> q(q_->row(row) + h * shape_.head_dim, q_->row(row) + (h + 1) * shape_.head_dim);
    if (is_bf16) {
      for (float& x : q) x = bf16_to_f32(f32_to_bf16(x));
    }
    std::vector<double> s;
    double magnitude = 0;  // largest scale * sum |q k|
    for (int64_t t = first(row); t <= pos; ++t) {
      double dot = 0, sizes = 0;
      for (int64_t i = 0; i < shape_.head_dim; ++i) {
        const double product = static_cast<double>(q[static_cast<size_t>(i)]) * load(row, t, g, true, i);
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
    // Relative error of a weight p / L. Scores: head_dim fused steps (pairs: fewer, and two sums a group), the scale,
    // that of the codes. p = exp(s - m): twice the error of a score, the rounding of s - m (at most `range`), 2 units
    // of exp. In L: 512 / 16 chain steps and 4 of the tree; each join two exponentials as above and 3 roundings. O: 512
    // chain steps (pairs: fewer), the scale of the codes, joins the same; then the division. Numerator and denominator
    // each carry the error of the weights. bf16 rounds each weight of the numerator once more, to 8 bits. What is
    // flushed as subnormal is below 512 * 2^-126 a chunk.
    const double chunks = static_cast<double>(pos / kAttentionChunk + 1);
    const double weight = 2 * (shape_.head_dim + 4) * magnitude + range + 2;
    const double joins = chunks * (2 * weight + 3);
    const double relative = kUnit * (2 * weight + 36 + 513 + 2 * joins + 1) * 1.01 + (is_bf16 ? 0x1p-8 * 1.01 : 0.0);
    for (int64_t i = 0; i < shape_.v_head_dim; ++i) {
      double out = 0, sizes = 0;
      for (int64_t t = first(row); t <= pos; ++t) {
        const double p = s[static_cast<size_t>(t - first(row))] / sum;
        const double v = load(row, t, g, false, i);
        out += p * v;
        sizes += p * std::abs(v);
      }
      result.out.push_back(out);
      result.bound.push_back(relative * sizes + chunks * 512 * 0x1p-126);
    }
  }

  Shape shape_;
  KvLayout layout_;
  int64_t rows_ = 0;
  std::optional<Rows> q_;
  std::vector<int32_t> begins_, positions_, table_;
  std::optional<AlignedBytes> slab_;
};

std::vector<Run> alone(std::initializer_list<int32_t> positions) {
  std::vector<Run> runs;
  for (int32_t pos : positions) runs.push_back({pos, 1});
  return runs;
}

std::vector<Shape> awkward_shapes() {
  std::vector<Shape> shapes;
  for (int32_t group : {1, 2, 3, 4, 5, 6, 7, 8, 9, 16}) {
    shapes.push_back({.heads = 2 * group,
                      .kv_heads = 2,
                      .head_dim = group % 2 == 0 ? 24 : 32,
                      .v_head_dim = group % 2 == 0 ? 24 : 32,
                      .runs = {{0, 1}, {37, 1}, {600, 1}, {0, 23}, {505, 11}}});
  }
  for (int32_t dim : {1, 3, 5, 8, 16, 20, 33, 64, 80, 96, 128, 144, 192}) {
    shapes.push_back({.heads = 5, .kv_heads = 1, .head_dim = dim, .v_head_dim = dim, .runs = alone({16, 531})});
    shapes.push_back(
        {.heads = 4, .kv_heads = 2, .head_dim = dim, .v_head_dim = 193 - dim, .runs = {{20, 1}, {130, 5}}});
    shapes.push_back({.heads = 3, .kv_heads = 3, .head_dim = 7, .v_head_dim = dim, .runs = {{63, 3}}});
  }
  for (int32_t v_head_dim : {16, 48, 64}) {
    shapes.push_back(
        {.heads = 3, .kv_heads = 1, .head_dim = 64, .v_head_dim = v_head_dim, .runs = {{0, 34}, {1530, 9}, {70, 1}}});
  }
  for (int32_t window : {0, 1, 2, 15, 16, 17, 511, 512, 513, 600}) {
    for (int32_t dim : {20, 32}) {
      const std::vector<Run> runs = dim == 20 ? alone({0, 14, 15, 16, 17, 511, 512, 513, 1023, 1024})
                                              : std::vector<Run>{{0, 18}, {500, 20}, {1020, 7}, {40, 1}};
      shapes.push_back({.heads = 3, .kv_heads = 1, .head_dim = dim, .v_head_dim = dim, .window = window, .runs = runs});
    }
  }
  shapes.push_back({.heads = 70, .kv_heads = 1, .head_dim = 8, .v_head_dim = 8, .runs = {{5, 1}, {529, 2}}});
  shapes.push_back({.heads = 2, .kv_heads = 1, .head_dim = kMaxHeadDim, .v_head_dim = kMaxHeadDim, .runs = {{9, 9}}});
  shapes.push_back({.heads = 4, .kv_heads = 1, .head_dim = 64, .v_head_dim = 64, .runs = {{1100, 1}}, .size = 30});
  TestWalk walk("shapes of attention", 5);
  std::erase_if(shapes, [&](const Shape&) { return !walk.takes_next(); });
  return shapes;
}

/// What the reference gives for each of awkward_shapes(): made once for all candidates.
const std::vector<Rows>& reference_results(DType dtype) {
  static std::map<DType, std::vector<Rows>> results;
  std::vector<Rows>& of_type = results[dtype];
  if (of_type.empty()) {
    for (const Shape& shape : awkward_shapes()) {
      of_type.push_back(Problem(dtype, shape, test_seed()).run(attention_table(dtype).reference().fn));
    }
  }
  return of_type;
}

void matches_reference(DType dtype, AttentionFn fn, const CaseLabel& label) {
  const std::vector<Shape> shapes = awkward_shapes();
  const std::vector<Rows>& want = reference_results(dtype);
  for (size_t i = 0; i < shapes.size(); ++i) {
    CaseLabel here = label;
    here.shape = shapes[i].text();
    expect_bit_equal(here, Problem(dtype, shapes[i], label.seed).run(fn).span(), want[i].span());
  }
}
OP_TEST(AttentionF32, MatchesReference, kAttentionF32) { matches_reference(DType::kF32, fn(), label("")); }
OP_TEST(AttentionF16, MatchesReference, kAttentionF16) { matches_reference(DType::kF16, fn(), label("")); }
OP_TEST(AttentionBF16, MatchesReference, kAttentionBF16) { matches_reference(DType::kBF16, fn(), label("")); }
OP_TEST(AttentionI8, MatchesReference, kAttentionI8) { matches_reference(DType::kI8, fn(), label("")); }

/// The references alone: all others equal them. Every second shape: the formula takes its time.
TEST(Attention, ReferencesMatchTheFormula) {
  const std::vector<Shape> shapes = awkward_shapes();
  for (DType dtype : {DType::kF32, DType::kF16, DType::kBF16, DType::kI8}) {
    for (size_t i = 0; i < shapes.size(); i += 2) {
      const Shape& shape = shapes[i];
      const Problem problem(dtype, shape, test_seed() + 2);
      const Problem::Exact want = problem.exact();
      expect_close({"attention", std::string(dtype_name(dtype)), shape.text(), test_seed()},
                   problem.run(attention_table(dtype).reference().fn).span(), want.out,
                   [&](size_t at) { return want.bound[at]; });
    }
  }
}

void any_split(DType dtype, AttentionFn fn, AttentionFn reference, const CaseLabel& label) {
  const Shape shape{
      .heads = 9, .kv_heads = 3, .head_dim = 32, .v_head_dim = 16, .runs = {{530, 1}, {3, 1}, {500, 14}, {40, 1}}};
  const Problem problem(dtype, shape, label.seed);
  const Rows whole = problem.run(reference);
  TestWalk walk("splits of attention", 8);
  for (int64_t cut = 0; cut <= problem.num_items(); cut += 4) {
    if (!walk.takes_next()) continue;
    CaseLabel here = label;
    here.shape = cat("cut at ", cut);
    expect_bit_equal(here, problem.run(fn, {{cut, problem.num_items()}, {0, cut}}).span(), whole.span());
  }
  // Items that nobody asked for are not written.
  const int64_t rows = whole.rows();
  const Rows part = problem.run(fn, {{rows + 3, rows + 5}});  // KV head 1, the rows 3 and 4 before the last
  for (int64_t i = 0; i < part.rows() * part.dim(); ++i) {
    const int64_t from_end = rows - 1 - i / part.dim();
    const bool asked = (from_end == 3 || from_end == 4) && i % part.dim() / (3 * 16) == 1;
    EXPECT_EQ(part.data()[i] != 77.0f, asked) << i;
  }
}
OP_TEST(AttentionF16, AnySplitOfItems, kAttentionF16) { any_split(DType::kF16, fn(), reference(), label("")); }
OP_TEST(AttentionBF16, AnySplitOfItems, kAttentionBF16) { any_split(DType::kBF16, fn(), reference(), label("")); }

/// Infinities and NaN among keys and values: the same floats on every instruction set, in this head and only in rows
/// that see the position.
void special_values(DType dtype, AttentionFn fn, AttentionFn reference, const CaseLabel& label) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  TestWalk walk("special values in attention", 7);
  for (int32_t dim : {9, 32}) {  // AMX takes the second
    const Shape shape{.heads = 4, .kv_heads = 2, .head_dim = dim, .v_head_dim = dim, .runs = {{507, 9}, {30, 1}}};
    const int64_t head = shape.v_head_dim;
    const Rows before = Problem(dtype, shape, label.seed).run(reference);
    for (float value : {-kInf, std::numeric_limits<float>::quiet_NaN(), 1e-39f}) {
      for (bool key : {true, false}) {
        for (int64_t token_pos : {509, 514}) {
          if (!walk.takes_next()) continue;
          Problem problem(dtype, shape, label.seed);
          problem.poke(key, token_pos, 5, value);
          const Rows got = problem.run(fn), want = problem.run(reference);
          CaseLabel here = label;
          here.shape = cat("dim ", dim, key ? ", key " : ", value ", value, " at ", token_pos);
          expect_bit_equal(here, got.span(), want.span());
          for (int64_t row = 0; row < got.rows(); ++row) {
            const bool sees = row < 9 && problem.position(row) >= token_pos;
            for (int64_t i = sees ? 2 * head : 0; i < 4 * head; ++i) {
              ASSERT_EQ(got.row(row)[i], before.row(row)[i]) << case_text(here) << ": row " << row << " index " << i;
            }
            EXPECT_TRUE(!sees || !std::isnan(value) || std::isnan(got.row(row)[5])) << case_text(here);
          }
        }
      }
    }
  }
}
OP_TEST(AttentionF32, SpecialValues, kAttentionF32) { special_values(DType::kF32, fn(), reference(), label("")); }
OP_TEST(AttentionF16, SpecialValues, kAttentionF16) { special_values(DType::kF16, fn(), reference(), label("")); }
OP_TEST(AttentionBF16, SpecialValues, kAttentionBF16) { special_values(DType::kBF16, fn(), reference(), label("")); }
OP_TEST(AttentionI8, SpecialValues, kAttentionI8) { special_values(DType::kI8, fn(), reference(), label("")); }

TEST(Attention, TableOfACacheType) {
  EXPECT_EQ(&attention_table(DType::kF32), &kAttentionF32);
  EXPECT_EQ(&attention_table(DType::kF16), &kAttentionF16);
  EXPECT_EQ(&attention_table(DType::kBF16), &kAttentionBF16);
  EXPECT_EQ(&attention_table(DType::kI8), &kAttentionI8);
}

}  // namespace
}  // namespace headrace
