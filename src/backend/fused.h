#pragma once

#include <array>
#include <variant>

#include "base/check.h"
#include "ops/attention.h"
#include "ops/elementwise.h"
#include "ops/matmul.h"
#include "ops/rms_norm.h"
#include "ops/rope.h"

namespace headrace {

/// A short list without allocation: what one fused call holds.
template <class T, int kCapacity>
class FixedList {
 public:
  void push_back(const T& item) noexcept {
    HR_CHECK(size_ < kCapacity, "more than ", kCapacity, " operators in one fused call");
    items_[static_cast<size_t>(size_++)] = item;
  }
  [[nodiscard]] int size() const noexcept { return size_; }
  [[nodiscard]] T* begin() noexcept { return items_.data(); }
  [[nodiscard]] T* end() noexcept { return items_.data() + size_; }
  [[nodiscard]] const T* begin() const noexcept { return items_.data(); }
  [[nodiscard]] const T* end() const noexcept { return items_.data() + size_; }

 private:
  std::array<T, kCapacity> items_{};
  int size_ = 0;
};

/// An operator whose output rows depend on the same rows of its inputs alone.
using RowOp = std::variant<AddArgs, RmsNormArgs, QuantizeArgs, SiluMulArgs, RopeArgs, KvWriteArgs>;

/// Operators that follow each other on the same `rows`, done row by row: a row stays in the nearest cache from the
/// first of them to the last, and threads meet once for all. Each has a whole number of items a row.
struct RowChain {
  explicit RowChain(int64_t rows_in) : rows(rows_in) {}
  template <class Args>
  void then(const Args& args) noexcept {
    ops.push_back(args);
  }
  static constexpr int kMostOps = 8;
  int64_t rows;
  FixedList<RowOp, kMostOps> ops;
};

/// Products that read the same rows (query, key and value; gate and up): threads share all of their neurons at once.
struct MatmulBatch {
  FixedList<MatmulArgs, 4> products;
};

}  // namespace headrace
