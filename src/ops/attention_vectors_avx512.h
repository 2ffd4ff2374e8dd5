#pragma once

#include "ops/attention_vectors.h"
#include "ops/vector_math_avx512.h"

/// In an unnamed namespace, unlike other headers: each variant file needs a copy of its own, compiled for its own
/// instruction set, that the linker cannot exchange for another's.
namespace headrace::avx512 {
namespace {

/// The instruction set V of attention_vectors.h.
struct AttentionVectors {
  using F = __m512;
  static constexpr int64_t kLanes = 16;

  static F zero() { return _mm512_setzero_ps(); }
  static F set1(float x) { return _mm512_set1_ps(x); }
  static F load(const float* p) { return _mm512_loadu_ps(p); }
  static F load(const float* p, int64_t n) { return _mm512_maskz_loadu_ps(first_lanes(n), p); }
  static void store(float* p, F x) { _mm512_storeu_ps(p, x); }
  static void store(float* p, F x, int64_t n) { _mm512_mask_storeu_ps(p, first_lanes(n), x); }
  static F add(F a, F b) { return _mm512_add_ps(a, b); }
  static F sub(F a, F b) { return _mm512_sub_ps(a, b); }
  static F mul(F a, F b) { return _mm512_mul_ps(a, b); }
  static F div(F a, F b) { return _mm512_div_ps(a, b); }
  static F max(F a, F b) { return _mm512_max_ps(a, b); }
  static F fma(F a, F b, F c) { return _mm512_fmadd_ps(a, b, c); }
  static F exp(F x) { return exp_f32(x); }
  static float most(F x) { return _mm512_reduce_max_ps(x); }
  static float lowest_lane(F x) { return _mm512_cvtss_f32(x); }
  static float sum16(const F (&chains)[1]) { return sum_lanes16(chains[0]); }
};

/// Recipe "bf16 v1" (round_bf16.h).
inline __m256i round_to_bf16(__m512 x) { return reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(x)); }

}  // namespace
}  // namespace headrace::avx512
