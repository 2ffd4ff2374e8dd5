#include "base/exact_math.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace headrace {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

/// An unevaluated sum; |lo| <= ulp(hi) / 2 after two_sum.
struct Double2 {
  double hi;
  double lo;
};

/// a + b without error (Knuth).
Double2 two_sum(double a, double b) noexcept {
  const double s = a + b;
  const double from_b = s - a;
  return {s, (a - (s - from_b)) + (b - from_b)};
}

/// a * b without error (Dekker), for factors far from overflow and underflow: each is cut into halves of 26 bits, whose
/// products are exact. Not std::fma, a slow call where the processor's is not known to the compiler.
Double2 two_product(double a, double b) noexcept {
  constexpr double kCut = 0x1p27 + 1;
  const double ta = kCut * a, tb = kCut * b;
  const double a1 = ta - (ta - a), b1 = tb - (tb - b);
  const double a2 = a - a1, b2 = b - b1;
  const double p = a * b;
  return {p, ((a1 * b1 - p) + a1 * b2 + a2 * b1) + a2 * b2};
}

/// Relative error below 2^-102.
Double2 multiply(Double2 a, Double2 b) noexcept {
  const Double2 p = two_product(a.hi, b.hi);
  return two_sum(p.hi, p.lo + (a.hi * b.lo + a.lo * b.hi));
}

/// The nearest integer of |x| < 2^51, ties to even.
double nearest(double x) noexcept {
  constexpr double kShift = 0x1.8p52;  // doubles of this size have no fraction bits
  return (x + kShift) - kShift;
}

/// 2^k for -1022 <= k <= 1023.
double power_of_two(int k) noexcept { return std::bit_cast<double>(static_cast<uint64_t>(k + 1023) << 52); }

/// sum of c[i] u^i by Horner's rule.
template <int kSize>
double polynomial(const double (&c)[kSize], double u) noexcept {
  double sum = c[kSize - 1];
  for (int i = kSize - 2; i >= 0; --i) sum = sum * u + c[i];
  return sum;
}

/// x - n pi/2 as a double2, for |n| < 2^31. pi/2 in parts (Cody and Waite): the first four have 22 bits, so that n
/// times a part is exact; the first two subtractions are exact as well, since the result is a multiple of the last
/// place of both operands and small. What is left out is below 2^-112, and doubles up to 2^31 come no closer than about
/// 2^-60 to a multiple of pi/2.
Double2 reduce_by_half_pi(double x, double n) noexcept {
  constexpr double kPart1 = 0x1.921fbp+0, kPart2 = 0x1.5110bp-22, kPart3 = 0x1.184698p-44, kPart4 = 0x1.3198ap-69;
  constexpr double kPart5 = 0x1.701b839a25205p-92;
  const double exact = (x - n * kPart1) - n * kPart2;
  const Double2 s3 = two_sum(exact, -(n * kPart3));
  const Double2 s4 = two_sum(s3.hi, -(n * kPart4));
  return two_sum(s4.hi, (s3.lo + s4.lo) - n * kPart5);
}

// Taylor's series on [-pi/4, pi/4]: the first term left out is below 2^-63 of the result.
constexpr double kSinSeries[] = {-1.0 / 6,        1.0 / 120,        -1.0 / 5040,          1.0 / 362880,
                                 -1.0 / 39916800, 1.0 / 6227020800, -1.0 / 1307674368000, 1.0 / 355687428096000};
constexpr double kCosSeries[] = {1.0 / 24,        -1.0 / 720,         1.0 / 40320,         -1.0 / 3628800,
                                 1.0 / 479001600, -1.0 / 87178291200, 1.0 / 20922789888000};

double sin_reduced(Double2 r) noexcept {
  const double u = r.hi * r.hi;
  return r.hi + (r.lo * (1 - 0.5 * u) + r.hi * u * polynomial(kSinSeries, u));  // sin(h + l) ~ sin h + l cos h
}

double cos_reduced(Double2 r) noexcept {
  const double u = r.hi * r.hi;
  const double half = 0.5 * u;
  const double head = 1 - half;
  const double head_error = (1 - head) - half;  // exact
  return head + (head_error + (u * u * polynomial(kCosSeries, u) - r.hi * r.lo));
}

constexpr double kLog2E = 0x1.71547652b82fep+0;
// ln 2 in parts; the first two have 40 bits, so that they times an exponent (11 bits) are exact.
constexpr double kLn2Part1 = 0x1.62e42fefa2p-1, kLn2Part2 = 0x1.9ef35793c6p-41, kLn2Part3 = 0x1.673007e5ed5e8p-81;

/// e^(x.hi + x.lo), |x.lo| <= ulp(x.hi). The result is rounded once more where it is subnormal.
double exp_sum(Double2 x) noexcept {
  if (x.hi > 710) return kInf;
  if (x.hi < -746) return 0;
  const double n = nearest(x.hi * kLog2E);
  const Double2 a = two_sum(x.hi - n * kLn2Part1, -(n * kLn2Part2));
  const Double2 r = two_sum(a.hi, a.lo + x.lo);
  // Taylor's series of (e^h - 1 - h) / h^2 on [-ln2 / 2, ln2 / 2]; the first term left out is below 2^-60.
  constexpr double kSeries[] = {1.0 / 2,         1.0 / 6,          1.0 / 24,         1.0 / 120,     1.0 / 720,
                                1.0 / 5040,      1.0 / 40320,      1.0 / 362880,     1.0 / 3628800, 1.0 / 39916800,
                                1.0 / 479001600, 1.0 / 6227020800, 1.0 / 87178291200};
  const Double2 head = two_sum(1, r.hi);
  const double tail = r.hi * r.hi * polynomial(kSeries, r.hi) + r.lo * (1 + r.hi);
  const double m = head.hi + (head.lo + tail);
  const int k = static_cast<int>(n);  // in [-1077, 1025]: two steps, each a normal power of two
  return m * power_of_two(k / 2) * power_of_two(k - k / 2);
}

/// log(x) of a positive finite x, relative error below 2^-63. x = 2^k (1 + f), 1 + f in [sqrt(1/2), sqrt(2));
/// log(1 + f) = 2 artanh(s), s = f / (2 + f) in [-0.172, 0.172]; artanh(s) = s + s^3 (1/3 + s^2 / 5 + ...).
Double2 log_sum(double x) noexcept {
  int k = 0;
  if (x < std::numeric_limits<double>::min()) {
    x *= 0x1p54;
    k = -54;
  }
  // Adding the distance of 1 from sqrt(1/2) makes the exponent field round at sqrt(1/2) instead of at 1.
  constexpr uint64_t kOne = 0x3ff0000000000000, kSqrtHalf = 0x3fe6a09e667f3bcd;
  const uint64_t shifted = std::bit_cast<uint64_t>(x) + (kOne - kSqrtHalf);
  k += static_cast<int>(shifted >> 52) - 1023;
  const double f = std::bit_cast<double>((shifted & 0x000fffffffffffff) + kSqrtHalf) - 1;

  const Double2 below = two_sum(2, f);
  const double q = f / below.hi;
  const Double2 back = two_product(q, below.hi);
  const Double2 s = two_sum(q, (((f - back.hi) - back.lo) - q * below.lo) / below.hi);

  // From s^2 / 5 on double precision is enough: these terms are below 2^-12 of the whole.
  constexpr double kSeries[] = {1.0 / 5,  1.0 / 7,  1.0 / 9,  1.0 / 11, 1.0 / 13,
                                1.0 / 15, 1.0 / 17, 1.0 / 19, 1.0 / 21, 1.0 / 23};
  const Double2 u = multiply(s, s);
  Double2 inner = two_sum(1.0 / 3, u.hi * polynomial(kSeries, u.hi));
  inner.lo += 0x1.5555555555555p-56;  // 1/3 - double(1/3)
  const Double2 cubic = multiply(multiply(s, u), inner);

  // 2 (s + cubic) + k ln 2, the great parts first.
  const Double2 sum = two_sum(s.hi, cubic.hi);
  const Double2 artanh2 = two_sum(2 * sum.hi, 2 * (sum.lo + (s.lo + cubic.lo)));
  const double dk = k;
  const Double2 scaled = two_sum(dk * kLn2Part1, dk * kLn2Part2);
  const Double2 total = two_sum(scaled.hi, artanh2.hi);
  return two_sum(total.hi, total.lo + (scaled.lo + dk * kLn2Part3 + artanh2.lo));
}

bool is_integer(double y) noexcept { return std::fabs(y) >= 0x1p52 || nearest(y) == y; }
bool is_odd_integer(double y) noexcept {
  return std::fabs(y) < 0x1p53 && is_integer(y) && (static_cast<int64_t>(y) & 1) != 0;
}

/// |x|^y, x not NaN, y neither NaN nor 0.
double pow_abs(double x, double y) noexcept {
  const double a = std::fabs(x);
  if (a == 1) return 1;
  if (a == 0 || a == kInf) return (a == 0) == (y < 0) ? kInf : 0;
  if (std::fabs(y) == kInf) return (a > 1) == (y > 0) ? kInf : 0;
  const Double2 log_a = log_sum(a);
  // |log a| is in [2^-53, 745]: beyond these the product is far outside the range of exp, or a^y rounds to 1.
  if (std::fabs(y) > 0x1p65) return (log_a.hi > 0) == (y > 0) ? kInf : 0;
  if (std::fabs(y) < 0x1p-65) return 1;
  return exp_sum(multiply(log_a, {y, 0}));
}

}  // namespace

SinCos exact_sincos(double x) noexcept {
  if (!(std::fabs(x) <= 0x1p31)) return {kNan, kNan};
  if (std::fabs(x) < 0x1p-27) return {x, 1};  // x^2 is below half an ulp of 1; keeps the sign of 0
  constexpr double kTwoOverPi = 0x1.45f306dc9c883p-1;
  const double n = nearest(x * kTwoOverPi);
  const Double2 r = reduce_by_half_pi(x, n);
  const double s = sin_reduced(r), c = cos_reduced(r);
  switch (static_cast<int64_t>(n) & 3) {
    case 0:
      return {s, c};
    case 1:
      return {c, -s};
    case 2:
      return {-s, -c};
    default:
      return {-c, s};
  }
}

double exact_exp(double x) noexcept { return x != x ? x : exp_sum({x, 0}); }

double exact_log(double x) noexcept {
  if (!(x > 0)) return x == 0 ? -kInf : kNan;
  if (x == kInf) return x;
  return log_sum(x).hi;
}

double exact_pow(double x, double y) noexcept {
  if (y == 0 || x == 1) return 1;
  if (x != x || y != y) return kNan;
  if (!std::signbit(x)) return pow_abs(x, y);
  if (x != 0 && x != -kInf && !is_integer(y)) return kNan;
  return is_odd_integer(y) ? -pow_abs(x, y) : pow_abs(x, y);
}

}  // namespace headrace
