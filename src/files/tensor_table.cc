#include "files/tensor_table.h"

#include <utility>

namespace headrace {

bool TensorTable::add(NamedTensor tensor) {
  if (!index_.emplace(tensor.name, tensors_.size()).second) return false;
  tensors_.push_back(std::move(tensor));
  return true;
}

const TensorView* TensorTable::find(std::string_view name) const noexcept {
  const auto it = index_.find(name);
  return it == index_.end() ? nullptr : &tensors_[it->second].view;
}

int64_t TensorTable::total_bytes() const noexcept {
  int64_t sum = 0;
  for (const NamedTensor& tensor : tensors_) sum += static_cast<int64_t>(tensor.view.bytes.size());
  return sum;
}

}  // namespace headrace
