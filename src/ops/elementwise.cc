#include "ops/elementwise.h"

#include <cstring>

#include "ops/vector_math.h"

namespace headrace {

namespace ref {
static void add(const AddArgs& a, RowRange rows) noexcept {
  for (int64_t i = rows.begin * a.dim; i < rows.end * a.dim; ++i) a.y[i] = a.a[i] + a.b[i];
}

static void silu_mul(const SiluMulArgs& a, RowRange rows) noexcept {
  for (int64_t i = rows.begin * a.dim; i < rows.end * a.dim; ++i) {
    const float x = a.gate[i];
    a.y[i] = x / (1.0f + exp_f32(-x)) * a.up[i];
  }
}

static void gather_rows(const GatherRowsArgs& a, RowRange rows) noexcept {
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    std::memcpy(a.y + r * a.dim, a.x + a.index[r] * a.dim, static_cast<size_t>(a.dim) * sizeof(float));
  }
}
}  // namespace ref

namespace avx2 {
void add(const AddArgs& a, RowRange rows) noexcept;
void silu_mul(const SiluMulArgs& a, RowRange rows) noexcept;
}  // namespace avx2
namespace avx512 {
void add(const AddArgs& a, RowRange rows) noexcept;
void silu_mul(const SiluMulArgs& a, RowRange rows) noexcept;
}  // namespace avx512

constinit const OpTable<AddFn> kAdd{
    "add", {{Isa::kRef, ref::add}, {Isa::kAvx2, HR_X86(avx2::add)}, {Isa::kAvx512, HR_X86(avx512::add)}}};
constinit const OpTable<SiluMulFn> kSiluMul{
    "silu_mul",
    {{Isa::kRef, ref::silu_mul}, {Isa::kAvx2, HR_X86(avx2::silu_mul)}, {Isa::kAvx512, HR_X86(avx512::silu_mul)}}};
// memcpy is the vector form already.
constinit const OpTable<GatherRowsFn> kGatherRows{"gather_rows", {{Isa::kRef, ref::gather_rows}}};

}  // namespace headrace
