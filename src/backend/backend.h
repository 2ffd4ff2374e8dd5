#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backend/fused.h"
#include "ops/attention.h"
#include "ops/elementwise.h"
#include "ops/embed.h"
#include "ops/matmul.h"
#include "ops/recipe.h"
#include "ops/rms_norm.h"
#include "ops/rope.h"

namespace headrace {

/// An in-order queue of work on one device. Used by one thread at a time.
class Queue {
 public:
  virtual ~Queue() = default;
  /// Waits until all that was enqueued has been done.
  virtual void synchronize() noexcept = 0;
};

/// An operator on a device: enqueues the work and returns. Pointers in the arguments are device addresses; the structs
/// themselves are copied. nullptr: the device does not have it, which is reported when a stage is built.
template <class Args>
using OpEntry = void (*)(Queue&, const Args&) noexcept;

/// The operators of a device. Adding an operator adds a row here and one in each backend that has it.
struct OpEntries {
  OpEntry<EmbedArgs> embed = nullptr;
  OpEntry<RmsNormArgs> rms_norm = nullptr;
  OpEntry<QuantizeArgs> quantize = nullptr;
  OpEntry<MatmulArgs> matmul = nullptr;
  OpEntry<AddArgs> add = nullptr;
  OpEntry<SiluMulArgs> silu_mul = nullptr;
  OpEntry<GatherRowsArgs> gather_rows = nullptr;
  OpEntry<RopeTableArgs> rope_table = nullptr;
  OpEntry<RopeArgs> rope = nullptr;
  OpEntry<KvWriteArgs> kv_write = nullptr;
  OpEntry<AttentionArgs> attention = nullptr;
  OpEntry<RowChain> row_chain = nullptr;
  OpEntry<MatmulBatch> matmul_batch = nullptr;
};

/// Which kernel a backend runs for an operator, for `inspect` and logs.
struct ChosenKernel {
  std::string op;       ///< "matmul Q4_K interleaved16", "rms_norm"
  std::string variant;  ///< "avx512"
};

/// A device: operator entries, memory, queues. Threading: memory functions from any thread.
class Backend {
 public:
  virtual ~Backend() = default;
  [[nodiscard]] virtual std::string_view name() const noexcept = 0;  ///< "cpu", "fakedev"
  [[nodiscard]] virtual const OpEntries& ops() const noexcept = 0;
  /// Whether ops().matmul (and embed) can read weights of this type and layout.
  [[nodiscard]] virtual bool has_matmul(DType dtype, WeightLayout layout) const noexcept = 0;
  [[nodiscard]] virtual std::vector<ChosenKernel> chosen_kernels() const = 0;
  [[nodiscard]] virtual std::unique_ptr<Queue> make_queue() = 0;

  /// Zeroed device memory, 64-byte aligned or better; large pieces cost physical memory only once they are written.
  /// Throws Error(kOutOfMemory) that names the size.
  [[nodiscard]] virtual void* allocate(int64_t bytes) = 0;
  /// Gives memory back. No queue may still have work that uses it.
  virtual void release(void* device, int64_t bytes) noexcept = 0;
  /// The host's view of device memory, where it has one (so that weights are packed in place), else nullptr.
  [[nodiscard]] virtual std::byte* host_view(void* device) const noexcept = 0;
  /// Whether operators take any host memory for device memory, so that what they make for the host needs no download.
  [[nodiscard]] virtual bool uses_host_memory() const noexcept = 0;
  /// Copies between host and device memory, in the queue's order; host memory must live until the queue has done it.
  virtual void upload(Queue& queue, void* device, const void* host, int64_t bytes) noexcept = 0;
  virtual void download(Queue& queue, void* host, const void* device, int64_t bytes) noexcept = 0;
  /// Copies between places of device memory that do not overlap, in the queue's order.
  virtual void copy(Queue& queue, void* to, const void* from, int64_t bytes) noexcept = 0;
  /// Lets go of the contents of a part of an allocation, whose physical memory goes back to the system as far as whole
  /// pages can; it costs some again once it is written. No queue may still have work that uses the part.
  virtual void discard(void* device, int64_t bytes) noexcept = 0;
};

/// A piece of device memory, given back by the destructor. Move-only; must not outlive its backend.
class DeviceBuffer {
 public:
  DeviceBuffer() = default;
  DeviceBuffer(Backend& backend, int64_t bytes) : backend_(&backend), data_(backend.allocate(bytes)), bytes_(bytes) {}
  DeviceBuffer(DeviceBuffer&& other) noexcept { swap(other); }
  DeviceBuffer& operator=(DeviceBuffer&& other) noexcept {
    DeviceBuffer(std::move(other)).swap(*this);
    return *this;
  }
  ~DeviceBuffer() {
    if (data_ != nullptr) backend_->release(data_, bytes_);
  }
  void swap(DeviceBuffer& other) noexcept {
    std::swap(backend_, other.backend_);
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
  }
  [[nodiscard]] int64_t bytes() const noexcept { return bytes_; }
  [[nodiscard]] std::byte* data() const noexcept { return static_cast<std::byte*>(data_); }
  template <class T>
  [[nodiscard]] T* as() const noexcept {
    return static_cast<T*>(data_);
  }

 private:
  Backend* backend_ = nullptr;
  void* data_ = nullptr;
  int64_t bytes_ = 0;
};

}  // namespace headrace
