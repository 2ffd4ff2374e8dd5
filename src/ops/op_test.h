#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <new>
#include <ostream>
#include <span>
#include <string>
#include <vector>

#include "base/cat.h"
#include "ops/op_table.h"

/// Helpers of the operators' tests. OP_TEST runs a body once for each variant of a table:
///
///   OP_TEST(RmsNorm, MatchesReference, kRmsNorm) {
///     for (int64_t dim : sizes_around(16)) for (int64_t shift : {0, 1, 3}) {
///       const Rows x = random_rows({.rows = 3, .dim = dim, .shift = shift, .seed = seed()});
///       ...  fn()(args, {0, 3});  reference()(args_of_want, {0, 3});
///       expect_bit_equal(label(cat("dim ", dim, " shift ", shift)), got.span(), want.span());
///     }
///   }
///
/// The tests are named "RmsNorm_MatchesReference.On/avx2"; one whose instruction set this machine lacks is skipped.
namespace headrace {

/// The seed of a test run: HEADRACE_TEST_SEED, or a fixed one. Every failure prints it.
[[nodiscard]] inline uint64_t test_seed() {
  const char* env = std::getenv("HEADRACE_TEST_SEED");
  return env != nullptr ? std::strtoull(env, nullptr, 10) : 20240607u;
}

/// Small deterministic generator (splitmix64): the same numbers on every machine.
class TestRandom {
 public:
  explicit TestRandom(uint64_t seed) : state_(seed) {}
  [[nodiscard]] uint64_t bits() noexcept {
    uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  /// Uniform in [-1, 1), 24 bits of it.
  [[nodiscard]] float uniform() noexcept { return static_cast<float>(bits() >> 40) * 0x1p-23f - 1.0f; }
  [[nodiscard]] float uniform(float low, float high) noexcept { return low + (high - low) * (uniform() * 0.5f + 0.5f); }
  /// An integer in [0, n).
  [[nodiscard]] int64_t below(int64_t n) noexcept { return static_cast<int64_t>(bits() % static_cast<uint64_t>(n)); }

 private:
  uint64_t state_;
};

/// Bytes at a 64-byte boundary, filled with 0xcd so that a place nobody wrote shows.
class AlignedBytes {
 public:
  explicit AlignedBytes(int64_t size)
      : size_(static_cast<size_t>(size)), data_(static_cast<std::byte*>(::operator new(size_ + 1, kAlign))) {
    std::memset(data_, 0xcd, size_);
  }
  AlignedBytes(AlignedBytes&& other) noexcept : size_(other.size_), data_(other.data_) { other.data_ = nullptr; }
  AlignedBytes& operator=(AlignedBytes&&) = delete;
  ~AlignedBytes() { ::operator delete(data_, kAlign); }
  [[nodiscard]] std::byte* data() const noexcept { return data_; }
  [[nodiscard]] std::span<const std::byte> span() const noexcept { return {data_, size_}; }

 private:
  static constexpr std::align_val_t kAlign{64};
  size_t size_;
  std::byte* data_;
};

/// f32 [rows, dim], contiguous, beginning `shift` floats past a 64-byte boundary. Copies are deep.
class Rows {
 public:
  Rows(int64_t rows, int64_t dim, int64_t shift = 0, float fill = 0.0f)
      : rows_(rows), dim_(dim), shift_(shift), bytes_((shift + rows * dim) * 4) {
    std::fill_n(data(), rows * dim, fill);
  }
  Rows(const Rows& other) : Rows(other.rows_, other.dim_, other.shift_) {
    std::copy_n(other.data(), rows_ * dim_, data());
  }
  Rows(Rows&&) noexcept = default;
  Rows& operator=(const Rows&) = delete;
  [[nodiscard]] int64_t rows() const noexcept { return rows_; }
  [[nodiscard]] int64_t dim() const noexcept { return dim_; }
  [[nodiscard]] float* data() noexcept { return reinterpret_cast<float*>(bytes_.data()) + shift_; }
  [[nodiscard]] const float* data() const noexcept { return reinterpret_cast<const float*>(bytes_.data()) + shift_; }
  [[nodiscard]] float* row(int64_t r) noexcept { return data() + r * dim_; }
  [[nodiscard]] const float* row(int64_t r) const noexcept { return data() + r * dim_; }
  [[nodiscard]] std::span<const float> span() const noexcept { return {data(), static_cast<size_t>(rows_ * dim_)}; }

 private:
  int64_t rows_, dim_, shift_;
  AlignedBytes bytes_;
};

struct RandomRows {
  int64_t rows = 1;
  int64_t dim = 1;
  int64_t shift = 0;  ///< floats past a 64-byte boundary
  float low = -1.0f;  ///< uniform in [low, high)
  float high = 1.0f;
  int64_t special = 0;  ///< about one value in `special` is 0, -0, tiny, huge, infinite or NaN; 0: none
  uint64_t seed = 0;
};
[[nodiscard]] inline Rows random_rows(const RandomRows& want) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  constexpr float kSpecials[]{
      0.0f, -0.0f, 1e-45f, -1e-39f, 3e38f, -3e38f, kInf, -kInf, std::numeric_limits<float>::quiet_NaN()};
  TestRandom random(want.seed);
  Rows out(want.rows, want.dim, want.shift);
  for (int64_t i = 0; i < want.rows * want.dim; ++i) {
    out.data()[i] = random.uniform(want.low, want.high);
    if (want.special > 0 && random.below(want.special) == 0)
      out.data()[i] = kSpecials[random.below(std::size(kSpecials))];
  }
  return out;
}

/// Lengths at which a kernel of `width` lanes may go wrong: 1, around one, two and four widths, a prime, a model's
/// size.
[[nodiscard]] inline std::vector<int64_t> sizes_around(int64_t width) {
  std::vector<int64_t> sizes{1,
                             2,
                             3,
                             width - 1,
                             width,
                             width + 1,
                             2 * width - 1,
                             2 * width,
                             2 * width + 1,
                             4 * width - 1,
                             4 * width,
                             4 * width + 3,
                             211,
                             576,
                             2048};
  std::sort(sizes.begin(), sizes.end());
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  std::erase_if(sizes, [](int64_t size) { return size < 1; });
  return sizes;
}

/// What a failure message begins with.
struct CaseLabel {
  std::string op;
  std::string variant;
  std::string shape;
  uint64_t seed = 0;
};
[[nodiscard]] inline std::string case_text(const CaseLabel& label) {
  return cat(label.op, " ", label.variant, ", ", label.shape, ", HEADRACE_TEST_SEED=", label.seed);
}

/// Bits equal, except that any NaN equals any NaN (instruction sets choose different payloads).
[[nodiscard]] inline bool same_bits(float a, float b) {
  return std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b) || (std::isnan(a) && std::isnan(b));
}
template <class T>
[[nodiscard]] bool same_bits(T a, T b) {
  return a == b;
}

/// Expects equal bits (floats: any NaN equals any NaN); reports the first difference and how many there are.
template <class T>
void expect_bit_equal(const CaseLabel& label, std::span<const T> got, std::span<const T> want) {
  ASSERT_EQ(got.size(), want.size()) << case_text(label);
  size_t differing = 0, first = 0;
  for (size_t i = got.size(); i-- > 0;) {
    if (!same_bits(got[i], want[i])) ++differing, first = i;
  }
  if (differing == 0) return;
  if constexpr (std::is_same_v<T, float>) {
    char values[128];  // in hexadecimal every bit shows
    std::snprintf(values, sizeof values, "got %a (%.9g), want %a (%.9g)", static_cast<double>(got[first]),
                  static_cast<double>(got[first]), static_cast<double>(want[first]), static_cast<double>(want[first]));
    ADD_FAILURE() << case_text(label) << ": " << differing << " of " << got.size() << " differ, first at " << first
                  << ": " << values;
  } else {
    ADD_FAILURE() << case_text(label) << ": " << differing << " of " << got.size() << " differ, first at " << first
                  << ": got " << static_cast<int64_t>(got[first]) << ", want " << static_cast<int64_t>(want[first]);
  }
}
inline void expect_bit_equal(const CaseLabel& label, std::span<const float> got, std::span<const float> want) {
  expect_bit_equal<float>(label, got, want);
}
inline void expect_bit_equal(const CaseLabel& label, std::span<const std::byte> got, std::span<const std::byte> want) {
  expect_bit_equal<std::byte>(label, got, want);
}

/// Expects |got[i] - want[i]| <= bound(i), the bound derived by the caller in double.
template <class Bound>
void expect_close(const CaseLabel& label, std::span<const float> got, std::span<const double> want, Bound bound) {
  ASSERT_EQ(got.size(), want.size()) << case_text(label);
  for (size_t i = 0; i < got.size(); ++i) {
    const double error = std::abs(static_cast<double>(got[i]) - want[i]);
    if (!(error <= bound(i))) {
      ADD_FAILURE() << case_text(label) << ": index " << i << ": got " << got[i] << ", want " << want[i] << ", error "
                    << error << ", bound " << bound(i);
      return;
    }
  }
}

/// One candidate under test, with the reference that it must equal bit for bit.
template <class Fn>
struct VariantCase {
  std::string op;
  OpVariant<Fn> variant;
  Fn reference = nullptr;
  friend void PrintTo(const VariantCase& c, std::ostream* out) { *out << c.op << " " << isa_name(c.variant.isa); }
};
template <class Fn>
[[nodiscard]] std::vector<VariantCase<Fn>> variant_cases(const OpTable<Fn>& table) {
  std::vector<VariantCase<Fn>> cases;
  for (const OpVariant<Fn>& variant : table) {
    cases.push_back({std::string(table.name()), variant, table.reference().fn});
  }
  return cases;
}

/// A test of one variant; skipped, with the reason, where the machine lacks the instruction set.
template <class Fn>
class OpTest : public testing::TestWithParam<VariantCase<Fn>> {
 protected:
  void SetUp() override {
    const Isa isa = this->GetParam().variant.isa;
    if (!machine_has(isa)) GTEST_SKIP() << "this processor has no " << isa_name(isa);
  }
  [[nodiscard]] Fn fn() const { return this->GetParam().variant.fn; }
  [[nodiscard]] Fn reference() const { return this->GetParam().reference; }
  [[nodiscard]] static uint64_t seed() { return test_seed(); }
  [[nodiscard]] CaseLabel label(std::string shape) const {
    return {this->GetParam().op, std::string(isa_name(this->GetParam().variant.isa)), std::move(shape), seed()};
  }
};

/// The table's variants in order: "avx2", and "avx2_1" for a second one of the same instruction set.
template <class Fn>
[[nodiscard]] std::string variant_test_name(const testing::TestParamInfo<VariantCase<Fn>>& info,
                                            const OpTable<Fn>& table) {
  const OpVariant<Fn>* variant = table.begin() + info.index;
  const auto earlier = std::count_if(table.begin(), variant, [&](const auto& v) { return v.isa == variant->isa; });
  return cat(isa_name(variant->isa), earlier == 0 ? std::string() : cat("_", earlier));
}

template <class Fn>
Fn function_type_of(const OpTable<Fn>& table);

}  // namespace headrace

/// Defines a test that runs for each variant of `table` (an OpTable): see the head of this file.
#define OP_TEST(suite, name, table)                                                                        \
  using suite##_##name = ::headrace::OpTest<decltype(::headrace::function_type_of(table))>;                \
  INSTANTIATE_TEST_SUITE_P(, suite##_##name, ::testing::ValuesIn(::headrace::variant_cases(table)),        \
                           [](const auto& param) { return ::headrace::variant_test_name(param, table); }); \
  TEST_P(suite##_##name, On)
