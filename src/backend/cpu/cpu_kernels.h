#pragma once

#include <array>
#include <string>
#include <vector>

#include "backend/backend.h"

namespace headrace {

/// The kernel that the processor runs for each operator, and for each type where types have kernels of their own.
struct CpuKernels {
  static constexpr size_t kNumDTypes = static_cast<size_t>(DType::kNVFP4) + 1;
  static constexpr size_t kNumLayouts = kAllWeightLayouts.size();

  EmbedFn embed = nullptr;
  RmsNormFn rms_norm = nullptr;
  std::array<QuantizeFn, kNumActForms> quantize{};
  std::array<std::array<MatmulFn, kNumLayouts>, kNumDTypes> matmul{};
  AddFn add = nullptr;
  SiluMulFn silu_mul = nullptr;
  GatherRowsFn gather_rows = nullptr;
  RopeTableFn rope_table = nullptr;
  RopeFn rope = nullptr;
  KvWriteFn kv_write = nullptr;
  std::array<AttentionFn, kNumDTypes> attention{};

  std::vector<ChosenKernel> names;
};

/// For every table the best candidate of class `isa` or below that reproduces its known problems. A few milliseconds.
[[nodiscard]] CpuKernels choose_cpu_kernels(Isa isa);

// The kernel for a call; nullptr: there is none for this type.
inline EmbedFn kernel_for(const CpuKernels& kernels, const EmbedArgs&) noexcept { return kernels.embed; }
inline RmsNormFn kernel_for(const CpuKernels& kernels, const RmsNormArgs&) noexcept { return kernels.rms_norm; }
inline QuantizeFn kernel_for(const CpuKernels& kernels, const QuantizeArgs& args) noexcept {
  return kernels.quantize[static_cast<size_t>(args.y.form)];
}
inline MatmulFn kernel_for(const CpuKernels& kernels, const MatmulArgs& args) noexcept {
  return kernels.matmul[static_cast<size_t>(args.w.dtype)][static_cast<size_t>(args.w.layout)];
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

}  // namespace headrace
