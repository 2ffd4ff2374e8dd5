#pragma once

#include <array>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "backend/cpu/tuning.h"

namespace headrace {

/// The kernel that the processor runs for each operator, and for each type where types have kernels of their own.
struct CpuKernels {
  static constexpr size_t kNumDTypes = static_cast<size_t>(DType::kNVFP4) + 1;
  static constexpr size_t kNumLayouts = kAllWeightLayouts.size();

  EmbedFn embed = nullptr;
  RmsNormFn rms_norm = nullptr;
  std::array<QuantizeFn, kNumActForms> quantize{};
  struct Matmul {
    MatmulFn fn = nullptr;
    int32_t grain = 1;
  };
  std::array<std::array<std::array<Matmul, kNumRowClasses>, kNumLayouts>, kNumDTypes> matmul{};
  AddFn add = nullptr;
  SiluMulFn silu_mul = nullptr;
  GatherRowsFn gather_rows = nullptr;
  RopeTableFn rope_table = nullptr;
  RopeFn rope = nullptr;
  KvWriteFn kv_write = nullptr;
  std::array<AttentionFn, kNumDTypes> attention{};

  std::vector<ChosenKernel> names;
};

/// For every table the best candidate of class `isa` or below (lower where `tuning` says so) that reproduces its known
/// problems. Milliseconds the first time; what `tuning` leaves alone is remembered.
[[nodiscard]] CpuKernels choose_cpu_kernels(Isa isa, const CpuTuning& tuning);

// The kernel for a call; nullptr: there is none for this type.
inline EmbedFn kernel_for(const CpuKernels& kernels, const EmbedArgs&) noexcept { return kernels.embed; }
inline RmsNormFn kernel_for(const CpuKernels& kernels, const RmsNormArgs&) noexcept { return kernels.rms_norm; }
inline QuantizeFn kernel_for(const CpuKernels& kernels, const QuantizeArgs& args) noexcept {
  return kernels.quantize[static_cast<size_t>(args.y.form)];
}
inline const CpuKernels::Matmul& matmul_for(const CpuKernels& kernels, const MatmulArgs& args) noexcept {
  return kernels.matmul[static_cast<size_t>(args.w.dtype)][static_cast<size_t>(args.w.layout)]
                       [static_cast<size_t>(row_class(args.x.rows))];
}
inline MatmulFn kernel_for(const CpuKernels& kernels, const MatmulArgs& args) noexcept {
  return matmul_for(kernels, args).fn;
}
inline AddFn kernel_for(const CpuKernels& kernels, const AddArgs&) noexcept { return kernels.add; }
inline SiluMulFn kernel_for(const CpuKernels& kernels, const SiluMulArgs&) noexcept { return kernels.silu_mul; }
inline GatherRowsFn kernel_for(const CpuKernels& kernels, const GatherRowsArgs&) noexcept {
  return kernels.gather_rows;
}
inline RopeTableFn kernel_for(const CpuKernels& kernels, const RopeTableArgs&) noexcept { return kernels.rope_table; }
inline RopeFn kernel_for(const CpuKernels& kernels, const RopeArgs&) noexcept { return kernels.rope; }
inline KvWriteFn kernel_for(const CpuKernels& kernels, const KvWriteArgs&) noexcept { return kernels.kv_write; }
inline AttentionFn kernel_for(const CpuKernels& kernels, const AttentionArgs& args) noexcept {
  return kernels.attention[static_cast<size_t>(args.layout.dtype)];
}

/// How many times the usual range a thread is given.
template <class Args>
[[nodiscard]] int64_t tuned_grain(const CpuKernels&, const Args&) noexcept {
  return 1;
}
inline int64_t tuned_grain(const CpuKernels& kernels, const MatmulArgs& args) noexcept {
  return matmul_for(kernels, args).grain;
}

}  // namespace headrace
