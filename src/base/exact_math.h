#pragma once

namespace headrace {

/// Elementary functions that give the same bits on every machine: only IEEE double additions, multiplications and
/// divisions in a fixed order. (A libm picks other code, and other roundings, on other processors.) Errors are below
/// 1 ulp (1 ulp where the result is subnormal); NaN gives NaN, infinities and zeros give what C's functions give.

struct SinCos {
  double sin = 0;
  double cos = 1;
};
/// |x| <= 2^31 radians; beyond, and for NaN, both are NaN.
[[nodiscard]] SinCos exact_sincos(double x) noexcept;

[[nodiscard]] double exact_exp(double x) noexcept;
/// Natural logarithm; -infinity at 0, NaN below.
[[nodiscard]] double exact_log(double x) noexcept;
/// x to the power of y, all special cases as in C (Annex F).
[[nodiscard]] double exact_pow(double x, double y) noexcept;

}  // namespace headrace
