#include "backend/cpu/cpu_backend.h"

#include <cstring>

#include "backend/cpu/cpu_kernels.h"
#include "backend/cpu/host_memory.h"
#include "backend/cpu/op_cost.h"
#include "backend/op_work.h"
#include "base/check.h"

namespace headrace {
namespace {

class CpuQueue final : public Queue {
 public:
  CpuQueue(ComputePool& pool, const CpuKernels& kernels) : pool_(pool), kernels_(kernels) {}
  void synchronize() noexcept override {}  // all has been done when an entry returns

  template <class Args>
  void run(const Args& args) noexcept {
    const auto kernel = kernel_for(kernels_, args);
    HR_CHECK(kernel != nullptr, "no kernel for these types: has_matmul was not asked");
    struct Call {
      decltype(kernel) fn;
      const Args& args;
    } call{kernel, args};
    pool_.parallel_for(
        op_items(args), range_grain(args),
        [](void* context, int64_t begin, int64_t end) noexcept {
          const Call& c = *static_cast<Call*>(context);
          c.fn(c.args, {begin, end});
        },
        &call);
  }

 private:
  ComputePool& pool_;
  const CpuKernels& kernels_;
};

template <class Args>
void run(Queue& queue, const Args& args) noexcept {
  static_cast<CpuQueue&>(queue).run(args);
}

constexpr OpEntries kCpuOps{.embed = run<EmbedArgs>,
                            .rms_norm = run<RmsNormArgs>,
                            .quantize = run<QuantizeArgs>,
                            .matmul = run<MatmulArgs>,
                            .add = run<AddArgs>,
                            .silu_mul = run<SiluMulArgs>,
                            .gather_rows = run<GatherRowsArgs>,
                            .rope_table = run<RopeTableArgs>,
                            .rope = run<RopeArgs>,
                            .kv_write = run<KvWriteArgs>,
                            .attention = run<AttentionArgs>};

class CpuBackend final : public Backend {
 public:
  CpuBackend(ComputePool& pool, Isa isa) : pool_(pool), kernels_(choose_cpu_kernels(isa)) {}

  [[nodiscard]] std::string_view name() const noexcept override { return "cpu"; }
  [[nodiscard]] const OpEntries& ops() const noexcept override { return kCpuOps; }
  [[nodiscard]] bool has_matmul(DType dtype, WeightLayout layout) const noexcept override {
    return kernels_.matmul[static_cast<size_t>(dtype)][static_cast<size_t>(layout)] != nullptr;
  }
  [[nodiscard]] std::vector<ChosenKernel> chosen_kernels() const override { return kernels_.names; }
  [[nodiscard]] std::unique_ptr<Queue> make_queue() override { return std::make_unique<CpuQueue>(pool_, kernels_); }

  [[nodiscard]] void* allocate(int64_t bytes) override { return allocate_host_memory(bytes); }
  void release(void* device, int64_t bytes) noexcept override { release_host_memory(device, bytes); }
  [[nodiscard]] std::byte* host_view(void* device) const noexcept override { return static_cast<std::byte*>(device); }
  void upload(Queue&, void* device, const void* host, int64_t bytes) noexcept override { copy(device, host, bytes); }
  void download(Queue&, void* host, const void* device, int64_t bytes) noexcept override { copy(host, device, bytes); }

 private:
  static void copy(void* to, const void* from, int64_t bytes) noexcept {
    if (bytes > 0) std::memcpy(to, from, static_cast<size_t>(bytes));
  }

  ComputePool& pool_;
  const CpuKernels kernels_;
};

}  // namespace

std::unique_ptr<Backend> make_cpu_backend(ComputePool& pool, Isa isa) {
  return std::make_unique<CpuBackend>(pool, isa);
}

}  // namespace headrace
