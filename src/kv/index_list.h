#pragma once

#include <cstdint>
#include <vector>

#include "base/check.h"

namespace headrace {

/// Some of the indices [0, capacity), each at most once, in the order in which they were added; any of them is removed
/// in constant time. Orders what is unused by age.
class IndexList {
 public:
  [[nodiscard]] bool contains(int32_t index) const noexcept { return at(index).prev != kAbsent; }
  [[nodiscard]] int32_t size() const noexcept { return size_; }
  /// The index added first; the list must not be empty.
  [[nodiscard]] int32_t front() const noexcept {
    HR_CHECK(size_ > 0, "an empty list");
    return first_;
  }

  void push_back(int32_t index) noexcept {
    HR_CHECK(!contains(index), "index ", index, " is there already");
    at(index) = {.prev = last_, .next = kEnd};
    (last_ == kEnd ? first_ : at(last_).next) = index;
    last_ = index;
    ++size_;
  }
  void remove(int32_t index) noexcept {
    HR_CHECK(contains(index), "index ", index, " is not there");
    const Link link = at(index);
    (link.prev == kEnd ? first_ : at(link.prev).next) = link.next;
    (link.next == kEnd ? last_ : at(link.next).prev) = link.prev;
    at(index) = {};
    --size_;
  }
  /// Changes the capacity; indices beyond it must not be in the list.
  void reserve(int32_t capacity) { links_.reserve(static_cast<size_t>(capacity)); }
  void resize(int32_t capacity) { links_.resize(static_cast<size_t>(capacity)); }

 private:
  static constexpr int32_t kEnd = -1;
  static constexpr int32_t kAbsent = -2;
  struct Link {
    int32_t prev = kAbsent;
    int32_t next = kAbsent;
  };
  [[nodiscard]] Link& at(int32_t index) noexcept { return links_[static_cast<size_t>(index)]; }
  [[nodiscard]] const Link& at(int32_t index) const noexcept { return links_[static_cast<size_t>(index)]; }

  std::vector<Link> links_;
  int32_t first_ = kEnd;
  int32_t last_ = kEnd;
  int32_t size_ = 0;
};

}  // namespace headrace
