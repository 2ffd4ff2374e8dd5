#include "ops/attention.h"

#include "ops/attention_kernels.h"

namespace headrace {

constinit const OpTable<AttentionFn> kAttentionF32{"attention_f32",
                                                   {{Isa::kRef, ref::attention_f32},
                                                    {Isa::kAvx2, HR_X86(avx2::attention_f32)},
                                                    {Isa::kAvx512, HR_X86(avx512::attention_f32)}}};
constinit const OpTable<AttentionFn> kAttentionF16{"attention_f16",
                                                   {{Isa::kRef, ref::attention_f16},
                                                    {Isa::kAvx2, HR_X86(avx2::attention_f16)},
                                                    {Isa::kAvx512, HR_X86(avx512::attention_f16)}}};
constinit const OpTable<AttentionFn> kAttentionBF16{"attention_bf16",
                                                    {{Isa::kRef, ref::attention_bf16},
                                                     {Isa::kAvx2, HR_X86(avx2::attention_bf16)},
                                                     {Isa::kAvx512, HR_X86(avx512::attention_bf16)},
                                                     {Isa::kAmx, HR_X86(amx::attention_bf16)}}};
constinit const OpTable<AttentionFn> kAttentionI8{"attention_i8",
                                                  {{Isa::kRef, ref::attention_i8},
                                                   {Isa::kAvx2, HR_X86(avx2::attention_i8)},
                                                   {Isa::kAvx512, HR_X86(avx512::attention_i8)}}};

const OpTable<AttentionFn>& attention_table(DType kv_dtype) noexcept {
  switch (kv_dtype) {
    case DType::kF32:
      return kAttentionF32;
    case DType::kBF16:
      return kAttentionBF16;
    case DType::kI8:
      return kAttentionI8;
    default:
      return kAttentionF16;
  }
}

}  // namespace headrace
