#pragma once

#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tensor/tensor.h"

namespace headrace {

struct NamedTensor {
  std::string name;
  TensorView view;
};

/// Tensors by name and in the order of their files.
class TensorTable {
 public:
  /// False, and no change, where the name is there already.
  [[nodiscard]] bool add(NamedTensor tensor);
  /// nullptr where there is none; valid until the next add().
  [[nodiscard]] const TensorView* find(std::string_view name) const noexcept;
  [[nodiscard]] std::span<const NamedTensor> all() const noexcept { return tensors_; }
  [[nodiscard]] size_t size() const noexcept { return tensors_.size(); }
  /// Sum of the tensors' bytes.
  [[nodiscard]] int64_t total_bytes() const noexcept;

 private:
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const noexcept { return std::hash<std::string_view>{}(text); }
  };
  std::vector<NamedTensor> tensors_;
  std::unordered_map<std::string, size_t, Hash, std::equal_to<>> index_;
};

}  // namespace headrace
