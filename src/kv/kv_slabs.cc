#include "kv/kv_slabs.h"

#include "base/check.h"

namespace headrace {

KvSlabs::KvSlabs(Backend& backend, const std::vector<Layer>& layers) : backend_(backend), layers_(layers) {
  for (const Layer& layer : layers_) slabs_.emplace_back(backend, layer.num_blocks * kv_block_bytes(layer.layout));
}

int64_t KvSlabs::bytes() const noexcept {
  int64_t total = 0;
  for (const DeviceBuffer& slab : slabs_) total += slab.bytes();
  return total;
}

void KvSlabs::copy(Queue& queue, const BlockCopy& copy) const noexcept {
  for (size_t i = 0; i < layers_.size(); ++i) {
    if (layers_[i].group != copy.group) continue;
    backend_.copy(queue, block(i, copy.to), block(i, copy.from), kv_block_bytes(layers_[i].layout));
  }
}

void KvSlabs::resize(int32_t group, int32_t num_blocks) noexcept {
  for (size_t i = 0; i < layers_.size(); ++i) {
    if (layers_[i].group != group) continue;
    HR_CHECK(num_blocks >= 0 && num_blocks <= layers_[i].num_blocks, num_blocks, " blocks, ", layers_[i].num_blocks,
             " reserved");
    std::byte* const end = block(i, BlockId{num_blocks});
    backend_.discard(end, slab(i) + slabs_[i].bytes() - end);
  }
}

}  // namespace headrace
