#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string_view>

#include "base/check.h"
#include "base/isa.h"

/// Names a kernel of an x86 variant file in a table; nothing on other processors.
#if defined(__x86_64__)
#define HR_X86(fn) fn
#define HR_HAS_X86 true
#else
#define HR_X86(fn) nullptr
#define HR_HAS_X86 false
#endif

namespace headrace {

/// Work items [begin, end) of an operator: what an item is, each contract says. Kernels know no threads: the backend
/// splits the items, and any split gives the same bits.
struct RowRange {
  int64_t begin = 0;
  int64_t end = 0;
};

/// One candidate of an operator. All candidates of a table give the same bits as its reference (Isa::kRef).
template <class Fn>
struct OpVariant {
  Isa isa = Isa::kRef;
  Fn fn = nullptr;
};

/// The candidates of one operator and recipe: the only place that knows them. Dispatch, tests and benchmarks walk it.
template <class Fn>
class OpTable {
 public:
  static constexpr size_t kMaxVariants = 6;

  constexpr OpTable(std::string_view name, std::initializer_list<OpVariant<Fn>> variants) : name_(name) {
    for (const OpVariant<Fn>& v : variants) {
      // Compared with null only where null can be: the undefined-behaviour sanitizer of g++ 12 takes the comparison for
      // no constant expression.
      if (HR_HAS_X86 || v.fn != nullptr) variants_[size_++] = v;
    }
  }
  [[nodiscard]] constexpr std::string_view name() const noexcept { return name_; }
  [[nodiscard]] constexpr const OpVariant<Fn>* begin() const noexcept { return variants_.data(); }
  [[nodiscard]] constexpr const OpVariant<Fn>* end() const noexcept { return variants_.data() + size_; }
  /// The reference: every table has one, in its first place.
  [[nodiscard]] constexpr const OpVariant<Fn>& reference() const noexcept { return variants_[0]; }
  /// The last candidate listed among those of the highest class not above `isa`.
  [[nodiscard]] const OpVariant<Fn>& best(Isa isa) const noexcept {
    const OpVariant<Fn>* found = &variants_[0];
    for (const OpVariant<Fn>& v : *this) {
      if (v.isa <= isa && v.isa >= found->isa) found = &v;
    }
    return *found;
  }

 private:
  std::string_view name_;
  std::array<OpVariant<Fn>, kMaxVariants> variants_{};
  size_t size_ = 0;
};

}  // namespace headrace
