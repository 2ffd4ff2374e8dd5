#include "backend/fakedev/fakedev_backend.h"

#include <cstring>

#include "backend/fakedev/device_memory.h"
#include "backend/fakedev/fakedev_queue.h"
#include "backend/fakedev/translate.h"
#include "backend/op_work.h"
#include "base/check.h"

namespace headrace {
namespace {

/// Addresses are checked and translated here, where the caller's stack still shows who gave a wrong one; they are read
/// and written by the queue's thread alone.
template <class Args>
void enqueue(Queue& queue, const Args& args) noexcept {
  auto& fakedev = static_cast<FakedevQueue&>(queue);
  const auto* const table = op_table(args);
  HR_CHECK(table != nullptr, "no kernel for these types: has_matmul was not asked");
  Args local = args;
  translate(fakedev.memory(), local);
  fakedev.enqueue([local, kernel = table->reference().fn] { kernel(local, {0, op_items(local)}); });
}

/// A device without fused kernels: one operator after the other.
void enqueue_chain(Queue& queue, const RowChain& chain) noexcept {
  for (const RowOp& op : chain.ops) {
    std::visit([&](const auto& args) { enqueue(queue, args); }, op);
  }
}
void enqueue_batch(Queue& queue, const MatmulBatch& batch) noexcept {
  for (const MatmulArgs& args : batch.products) enqueue(queue, args);
}

constexpr OpEntries kFakedevOps{.embed = enqueue<EmbedArgs>,
                                .rms_norm = enqueue<RmsNormArgs>,
                                .quantize = enqueue<QuantizeArgs>,
                                .matmul = enqueue<MatmulArgs>,
                                .add = enqueue<AddArgs>,
                                .silu_mul = enqueue<SiluMulArgs>,
                                .gather_rows = enqueue<GatherRowsArgs>,
                                .rope_table = enqueue<RopeTableArgs>,
                                .rope = enqueue<RopeArgs>,
                                .kv_write = enqueue<KvWriteArgs>,
                                .attention = enqueue<AttentionArgs>,
                                .row_chain = enqueue_chain,
                                .matmul_batch = enqueue_batch};

class FakedevBackend final : public Backend {
 public:
  explicit FakedevBackend(int64_t capacity_bytes) : memory_(capacity_bytes) {}

  [[nodiscard]] std::string_view name() const noexcept override { return "fakedev"; }
  [[nodiscard]] const OpEntries& ops() const noexcept override { return kFakedevOps; }
  [[nodiscard]] bool has_matmul(DType dtype, WeightLayout layout) const noexcept override {
    return matmul_table(dtype, layout) != nullptr;
  }
  [[nodiscard]] std::vector<ChosenKernel> chosen_kernels() const override {
    return {{.op = "all operators", .variant = std::string(isa_name(Isa::kRef))}};
  }
  [[nodiscard]] std::unique_ptr<Queue> make_queue() override { return std::make_unique<FakedevQueue>(memory_); }

  [[nodiscard]] void* allocate(int64_t bytes) override { return memory_.allocate(bytes); }
  void release(void* device, int64_t bytes) noexcept override { memory_.release(device, bytes); }
  [[nodiscard]] std::byte* host_view(void*) const noexcept override { return nullptr; }
  void upload(Queue& queue, void* device, const void* host, int64_t bytes) noexcept override {
    enqueue_copy(queue, memory_.local(device), host, bytes);
  }
  [[nodiscard]] bool uses_host_memory() const noexcept override { return false; }
  void download(Queue& queue, void* host, const void* device, int64_t bytes) noexcept override {
    enqueue_copy(queue, host, memory_.local(device), bytes);
  }
  void copy(Queue& queue, void* to, const void* from, int64_t bytes) noexcept override {
    enqueue_copy(queue, memory_.local(to), memory_.local(from), bytes);
  }
  void discard(void* device, int64_t bytes) noexcept override { memory_.discard(device, bytes); }

 private:
  static void enqueue_copy(Queue& queue, void* to, const void* from, int64_t bytes) noexcept {
    if (bytes <= 0) return;
    static_cast<FakedevQueue&>(queue).enqueue([=] { std::memcpy(to, from, static_cast<size_t>(bytes)); });
  }

  DeviceMemory memory_;
};

}  // namespace

std::unique_ptr<Backend> make_fakedev_backend(int64_t capacity_bytes) {
  return std::make_unique<FakedevBackend>(capacity_bytes);
}

}  // namespace headrace
