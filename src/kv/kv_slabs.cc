#include "kv/kv_slabs.h"

namespace headrace {

KvSlabs::KvSlabs(Backend& backend, const std::vector<Layer>& layers) : layers_(layers) {
  for (const Layer& layer : layers_) slabs_.emplace_back(backend, layer.num_blocks * kv_block_bytes(layer.layout));
}

int64_t KvSlabs::bytes() const noexcept {
  int64_t total = 0;
  for (const DeviceBuffer& slab : slabs_) total += slab.bytes();
  return total;
}

}  // namespace headrace
