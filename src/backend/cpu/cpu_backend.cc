#include "backend/cpu/cpu_backend.h"

#include <algorithm>
#include <cstring>

#include "backend/cpu/cpu_kernels.h"
#include "backend/cpu/host_memory.h"
#include "backend/cpu/op_cost.h"
#include "backend/op_work.h"
#include "base/check.h"

namespace headrace {
namespace {

/// One operator of a chain.
struct RowStep {
  void (*run)(const CpuKernels&, const void* args, RowRange items) noexcept = nullptr;
  const void* args = nullptr;
  int64_t items_per_row = 1;
};

template <class Args>
RowStep row_step(const Args& args, int64_t rows) noexcept {
  const int64_t items = op_items(args);
  HR_CHECK(rows > 0 && items % rows == 0, items, " items in a chain of ", rows, " rows");
  return {.run =
              [](const CpuKernels& kernels, const void* of, RowRange range) noexcept {
                const Args& a = *static_cast<const Args*>(of);
                kernel_for(kernels, a)(a, range);
              },
          .args = &args,
          .items_per_row = items / rows};
}

class CpuQueue final : public Queue {
 public:
  CpuQueue(ComputePool& pool, const CpuKernels& kernels) : pool_(pool), kernels_(kernels) {}
  void synchronize() noexcept override {}  // all has been done when an entry returns

  template <class Args>
  void run(const Args& args) noexcept {
    const auto kernel = kernel_for(kernels_, args);
    HR_CHECK(kernel != nullptr, "no kernel for these types: has_matmul was not asked");
    split(op_items(args), range_grain(args) * tuned_grain(kernels_, args), [&](int64_t begin, int64_t end) noexcept {
      kernel(args, {begin, end});
    });
  }

  void run(const RowChain& chain) noexcept {
    FixedList<RowStep, RowChain::kMostOps> steps;
    double row_ns = 0;
    for (const RowOp& op : chain.ops) {
      std::visit(
          [&](const auto& args) {
            steps.push_back(row_step(args, chain.rows));
            row_ns += item_ns(args) * static_cast<double>((steps.end() - 1)->items_per_row);
          },
          op);
    }
    if (steps.size() == 0) return;
    split(chain.rows, items_worth_a_range(row_ns), [&](int64_t begin, int64_t end) noexcept {
      for (int64_t row = begin; row < end; ++row) {
        for (const RowStep& step : steps) {
          step.run(kernels_, step.args, {row * step.items_per_row, (row + 1) * step.items_per_row});
        }
      }
    });
  }

  void run(const MatmulBatch& batch) noexcept {
    int64_t items = 0, grain = 1;
    for (const MatmulArgs& args : batch.products) {
      items += op_items(args);
      grain = std::max(grain, range_grain(args) * tuned_grain(kernels_, args));
    }
    split(items, grain, [&](int64_t begin, int64_t end) noexcept {
      int64_t first = 0;  // of the product's items
      for (const MatmulArgs& args : batch.products) {
        const int64_t last = first + op_items(args);
        const RowRange part{std::max(begin, first) - first, std::min(end, last) - first};
        if (part.begin < part.end) kernel_for(kernels_, args)(args, part);
        first = last;
      }
    });
  }

 private:
  /// body(begin, end) over [0, items) by the pool.
  template <class Body>
  void split(int64_t items, int64_t grain, const Body& body) noexcept {
    pool_.parallel_for(
        items, grain,
        [](void* context, int64_t begin, int64_t end) noexcept { (*static_cast<const Body*>(context))(begin, end); },
        const_cast<Body*>(&body));
  }

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
                            .attention = run<AttentionArgs>,
                            .row_chain = run<RowChain>,
                            .matmul_batch = run<MatmulBatch>};

class CpuBackend final : public Backend {
 public:
  CpuBackend(ComputePool& pool, Isa isa, const CpuTuning& tuning)
      : pool_(pool), kernels_(choose_cpu_kernels(isa, tuning)) {}

  [[nodiscard]] std::string_view name() const noexcept override { return "cpu"; }
  [[nodiscard]] const OpEntries& ops() const noexcept override { return kCpuOps; }
  [[nodiscard]] bool has_matmul(DType dtype, WeightLayout layout) const noexcept override {
    return kernels_.matmul[static_cast<size_t>(dtype)][static_cast<size_t>(layout)][0].fn != nullptr;
  }
  [[nodiscard]] std::vector<ChosenKernel> chosen_kernels() const override { return kernels_.names; }
  [[nodiscard]] std::unique_ptr<Queue> make_queue() override { return std::make_unique<CpuQueue>(pool_, kernels_); }

  [[nodiscard]] void* allocate(int64_t bytes) override { return allocate_host_memory(bytes); }
  void release(void* device, int64_t bytes) noexcept override { release_host_memory(device, bytes); }
  [[nodiscard]] std::byte* host_view(void* device) const noexcept override { return static_cast<std::byte*>(device); }
  void upload(Queue&, void* device, const void* host, int64_t bytes) noexcept override {
    copy_bytes(device, host, bytes);
  }
  [[nodiscard]] bool uses_host_memory() const noexcept override { return true; }
  void download(Queue&, void* host, const void* device, int64_t bytes) noexcept override {
    copy_bytes(host, device, bytes);
  }
  void copy(Queue&, void* to, const void* from, int64_t bytes) noexcept override { copy_bytes(to, from, bytes); }
  void discard(void* device, int64_t bytes) noexcept override { discard_host_memory(device, bytes); }

 private:
  static void copy_bytes(void* to, const void* from, int64_t bytes) noexcept {
    if (bytes > 0) std::memcpy(to, from, static_cast<size_t>(bytes));
  }

  ComputePool& pool_;
  const CpuKernels kernels_;
};

}  // namespace

std::unique_ptr<Backend> make_cpu_backend(ComputePool& pool, Isa isa, const CpuTuning& tuning) {
  return std::make_unique<CpuBackend>(pool, isa, tuning);
}

}  // namespace headrace
