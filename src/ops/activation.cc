#include "ops/activation.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/byte_order.h"
#include "ops/bf16_pairs_layout.h"
#include "ops/quantize_kernels.h"
#include "ops/round_bf16.h"
#include "ops/vector_math.h"

namespace headrace {
namespace {

int64_t pad64(int64_t bytes) noexcept { return (bytes + 63) / 64 * 64; }
int64_t act_block(ActForm form) noexcept { return form == ActForm::kQ8x32 ? 32 : 256; }
int64_t act_sum_block(ActForm form) noexcept { return form == ActForm::kQ8x32 ? 32 : 16; }

int act_rounds(ActForm form) noexcept { return form == ActForm::kQ8x256Twice ? 2 : 1; }

/// The outliers of a row, being collected.
struct OutlierList {
  int32_t count = 0;
  Outlier* at;
};

/// Block [first, first + block) of row x to q, its scale, the sums of each `sum_block` q's, and its outliers.
void quantize_block(const float* x, int64_t first, int64_t block, int64_t sum_block, int rounds, int8_t* q,
                    float* scale, int16_t* sum, OutlierList& outliers) noexcept {
  x += first;
  float limit = std::numeric_limits<float>::infinity();
  for (int round = 0; round < rounds; ++round) {
    float chains[16]{};
    for (int64_t i = 0; i < block; ++i) {
      if (std::fabs(x[i]) <= limit) chains[i % 16] += std::fabs(x[i]);  // false for a NaN
    }
    limit = sum_lanes16(chains) * (static_cast<float>(kOutlierFactor) / static_cast<float>(block));
  }
  float amax = 0;
  for (int64_t i = 0; i < block; ++i) {
    const float a = std::fabs(x[i]);
    if (a > limit) {
      outliers.at[outliers.count++] = {static_cast<int32_t>(first + i), x[i]};
    } else if (a > amax) {  // false for a NaN
      amax = a;
    }
  }
  *scale = amax / 127.0f;
  const float inv = amax > 0 ? 127.0f / amax : 0.0f;
  for (int64_t i = 0; i < block; ++i) {
    const float t = x[i] * inv;
    // Not a number: x is, or x and inv are infinity and 0 in either order (amax infinite or tiny).
    const bool is_zero = std::isnan(t) || std::fabs(x[i]) > limit;
    q[i] = is_zero ? int8_t{0} : static_cast<int8_t>(std::nearbyint(std::clamp(t, -127.0f, 127.0f)));
  }
  for (int64_t s = 0; s < block / sum_block; ++s) {
    int total = 0;
    for (int64_t i = 0; i < sum_block; ++i) total += q[s * sum_block + i];
    sum[s] = static_cast<int16_t>(total);
  }
}

}  // namespace

std::string_view act_form_name(ActForm form) noexcept {
  constexpr std::array<std::string_view, kNumActForms> kNames{"f32", "q8x32", "q8x256", "bf16", "q8x256twice"};
  return kNames[static_cast<size_t>(form)];
}

int64_t act_scale_offset(ActForm form, int64_t k) noexcept { return form == ActForm::kF32 ? 0 : pad64(k); }

int64_t act_sum_offset(ActForm form, int64_t k) noexcept {
  return form == ActForm::kF32 ? 0 : act_scale_offset(form, k) + pad64((k + act_block(form) - 1) / act_block(form) * 4);
}

int64_t act_outlier_offset(ActForm form, int64_t k) noexcept {
  return form == ActForm::kF32 ? 0 : act_sum_offset(form, k) + pad64(k / act_sum_block(form) * 2);
}

int64_t act_row_bytes(ActForm form, int64_t k) noexcept {
  if (form == ActForm::kF32) return k * 4;
  if (form == ActForm::kBf16) return (bf16_padded_k(k) * 2 / 64 | 1) * 64;
  const int64_t most = act_rounds(form) * (k / kOutlierFactor);
  return act_outlier_offset(form, k) + pad64(kOutlierHeadBytes + most * static_cast<int64_t>(sizeof(Outlier)));
}

namespace ref {
namespace {

void quantize(const QuantizeArgs& args, RowRange rows) noexcept {
  const ActForm form = args.y.form;
  const int64_t k = args.y.k, row_bytes = act_row_bytes(form, k);
  const int rounds = act_rounds(form);
  const int64_t block = act_block(form), sums_a_block = block / act_sum_block(form);
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    std::byte* out = args.y.data + r * row_bytes;
    const int64_t outliers_at = act_outlier_offset(form, k);
    std::fill_n(out, outliers_at + kOutlierHeadBytes, std::byte{0});
    OutlierList outliers{.at = reinterpret_cast<Outlier*>(out + outliers_at + kOutlierHeadBytes)};
    auto* q = reinterpret_cast<int8_t*>(out);
    auto* scale = reinterpret_cast<float*>(out + act_scale_offset(form, k));
    auto* sum = reinterpret_cast<int16_t*>(out + act_sum_offset(form, k));
    for (int64_t b = 0; b * block < k; ++b) {
      quantize_block(args.x + r * k, b * block, std::min(block, k - b * block), act_sum_block(form), rounds,
                     q + b * block, scale + b, sum + b * sums_a_block, outliers);
    }
    store_le(out + outliers_at, outliers.count);
  }
}

}  // namespace
}  // namespace ref

constinit const OpTable<QuantizeFn> kQuantizeQ8x32{"quantize_q8x32",
                                                   {{Isa::kRef, ref::quantize},
                                                    {Isa::kAvx2, HR_X86(avx2::quantize_q8x32)},
                                                    {Isa::kAvx512, HR_X86(avx512::quantize_q8x32)}}};
constinit const OpTable<QuantizeFn> kQuantizeQ8x256{"quantize_q8x256",
                                                    {{Isa::kRef, ref::quantize},
                                                     {Isa::kAvx2, HR_X86(avx2::quantize_q8x256)},
                                                     {Isa::kAvx512, HR_X86(avx512::quantize_q8x256)}}};

constinit const OpTable<QuantizeFn> kQuantizeQ8x256Twice{"quantize_q8x256twice",
                                                         {{Isa::kRef, ref::quantize},
                                                          {Isa::kAvx2, HR_X86(avx2::quantize_q8x256_twice)},
                                                          {Isa::kAvx512, HR_X86(avx512::quantize_q8x256_twice)}}};

const OpTable<QuantizeFn>* quantize_table(ActForm form) noexcept {
  switch (form) {
    case ActForm::kQ8x32:
      return &kQuantizeQ8x32;
    case ActForm::kQ8x256:
      return &kQuantizeQ8x256;
    case ActForm::kQ8x256Twice:
      return &kQuantizeQ8x256Twice;
    case ActForm::kBf16:
      return &kRoundBf16;
    case ActForm::kF32:
      break;
  }
  return nullptr;
}

}  // namespace headrace
