#include "ops/matmul.h"

#include <array>

#include "ops/matmul_kernels.h"
#include "ops/matmul_r8x256.h"
#include "quant/format.h"

namespace headrace {
namespace {

using Table = OpTable<MatmulFn>;

template <DType T>
constexpr Table interleaved_table(std::string_view name) {
  return {name,
          {{Isa::kRef, ref::matmul_interleaved},
           {Isa::kAvx2, HR_X86(avx2::matmul_interleaved<T>)},
           {Isa::kAvx512, HR_X86(avx512::matmul_interleaved<T>)},
           {Isa::kAmx, HR_X86(amx::matmul_interleaved<T>)}}};
}
template <DType T>
constexpr Table requant_table(std::string_view name) {
  return {name,
          {{Isa::kRef, ref::matmul_r8x256},
           {Isa::kAvx2, HR_X86(avx2::matmul_r8x256<T>)},
           {Isa::kAvx512, HR_X86(avx512::matmul_r8x256<T>)},
           {Isa::kAmx, HR_X86(amx::matmul_r8x256<T>)}}};
}
template <DType T>
constexpr Table plain_table(std::string_view name) {
  return {name,
          {{Isa::kRef, ref::matmul_decoded},
           {Isa::kAvx2, HR_X86(avx2::matmul_plain<T>)},
           {Isa::kAvx512, HR_X86(avx512::matmul_plain<T>)}}};
}

struct TableRow {
  DType dtype;
  Table table;
};
constinit const std::array kInterleavedTables{
    TableRow{DType::kQ4_0, interleaved_table<DType::kQ4_0>("matmul_q4_0")},
    TableRow{DType::kQ4_1, interleaved_table<DType::kQ4_1>("matmul_q4_1")},
    TableRow{DType::kQ5_0, interleaved_table<DType::kQ5_0>("matmul_q5_0")},
    TableRow{DType::kQ5_1, interleaved_table<DType::kQ5_1>("matmul_q5_1")},
    TableRow{DType::kQ8_0, interleaved_table<DType::kQ8_0>("matmul_q8_0")},
    TableRow{DType::kIQ4_NL, interleaved_table<DType::kIQ4_NL>("matmul_iq4_nl")},
    TableRow{DType::kQ2_K, interleaved_table<DType::kQ2_K>("matmul_q2_k")},
    TableRow{DType::kQ3_K, interleaved_table<DType::kQ3_K>("matmul_q3_k")},
    TableRow{DType::kQ4_K, interleaved_table<DType::kQ4_K>("matmul_q4_k")},
    TableRow{DType::kQ5_K, interleaved_table<DType::kQ5_K>("matmul_q5_k")},
    TableRow{DType::kQ6_K, interleaved_table<DType::kQ6_K>("matmul_q6_k")},
    TableRow{DType::kIQ4_XS, interleaved_table<DType::kIQ4_XS>("matmul_iq4_xs")},
};
constinit const std::array kRequantTables{
    TableRow{DType::kQ4_0, requant_table<DType::kQ4_0>("matmul_r8x256_q4_0")},
    TableRow{DType::kQ4_1, requant_table<DType::kQ4_1>("matmul_r8x256_q4_1")},
    TableRow{DType::kQ5_0, requant_table<DType::kQ5_0>("matmul_r8x256_q5_0")},
    TableRow{DType::kQ5_1, requant_table<DType::kQ5_1>("matmul_r8x256_q5_1")},
    TableRow{DType::kQ8_0, requant_table<DType::kQ8_0>("matmul_r8x256_q8_0")},
    TableRow{DType::kIQ4_NL, requant_table<DType::kIQ4_NL>("matmul_r8x256_iq4_nl")},
    TableRow{DType::kQ2_K, requant_table<DType::kQ2_K>("matmul_r8x256_q2_k")},
    TableRow{DType::kQ3_K, requant_table<DType::kQ3_K>("matmul_r8x256_q3_k")},
    TableRow{DType::kQ4_K, requant_table<DType::kQ4_K>("matmul_r8x256_q4_k")},
    TableRow{DType::kQ5_K, requant_table<DType::kQ5_K>("matmul_r8x256_q5_k")},
    TableRow{DType::kQ6_K, requant_table<DType::kQ6_K>("matmul_r8x256_q6_k")},
    TableRow{DType::kIQ4_XS, requant_table<DType::kIQ4_XS>("matmul_r8x256_iq4_xs")},
};
constinit const std::array kPlainTables{
    TableRow{DType::kF32, plain_table<DType::kF32>("matmul_f32")},
    TableRow{DType::kF16, plain_table<DType::kF16>("matmul_f16")},
    TableRow{DType::kBF16, plain_table<DType::kBF16>("matmul_bf16")},
};
constinit const Table kDecodedTable{"matmul_decoded",
                                    {{Isa::kRef, ref::matmul_decoded},
                                     {Isa::kAvx2, HR_X86(avx2::matmul_decoded)},
                                     {Isa::kAvx512, HR_X86(avx512::matmul_decoded)}}};
constinit const Table kBf16Table{"matmul_bf16x32",
                                 {{Isa::kRef, ref::matmul_bf16},
                                  {Isa::kAvx2, HR_X86(avx2::matmul_bf16)},
                                  {Isa::kAvx512, HR_X86(avx512::matmul_bf16)},
                                  {Isa::kAmx, HR_X86(amx::matmul_bf16)}}};

template <class Rows>
const Table* find_table(const Rows& rows, DType dtype) noexcept {
  for (const TableRow& row : rows) {
    if (row.dtype == dtype) return &row.table;
  }
  return nullptr;
}

}  // namespace

const OpTable<MatmulFn>* matmul_table(DType dtype, WeightLayout layout) noexcept {
  if (layout == WeightLayout::kInterleaved16) return find_table(kInterleavedTables, dtype);
  if (layout == WeightLayout::kRequant16) return find_table(kRequantTables, dtype);
  if (layout == WeightLayout::kBf16Pairs16) return has_bf16_pairs_layout(dtype) ? &kBf16Table : nullptr;
  if (const Table* plain = find_table(kPlainTables, dtype)) return plain;
  return find_format(dtype) != nullptr ? &kDecodedTable : nullptr;
}

}  // namespace headrace
