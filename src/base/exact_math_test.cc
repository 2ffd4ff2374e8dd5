#include "base/exact_math.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>

namespace headrace {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

/// |got - want| in units of the last place of `want`, a long double of 64 bits: our own error, up to 2^-11 ulp.
double error_ulps(double got, long double want) {
  const auto nearest = static_cast<double>(want);
  if (std::isinf(nearest) || std::isinf(got)) return got == nearest ? 0 : kInf;
  if (std::isnan(got)) return kInf;
  const double a = std::fabs(nearest);
  const long double ulp = std::nextafter(a, kInf) - a;  // the quotient in long double: the error may be below 2^-1074
  return static_cast<double>(std::fabs(static_cast<long double>(got) - want) / ulp);
}

/// The largest errors seen, of normal results and of subnormal ones, which are rounded twice.
struct Worst {
  void see(double got, long double want) {
    double& worst = std::isnormal(static_cast<double>(want)) ? normal : subnormal;
    worst = std::max(worst, error_ulps(got, want));
  }
  double normal = 0;
  double subnormal = 0;
};

/// Both signs, all sizes from 2^lo to 2^hi alike.
class AnySize {
 public:
  double operator()(int lo, int hi) {
    const double m = std::uniform_real_distribution<double>(1, 2)(random_);
    const int e = std::uniform_int_distribution<int>(lo, hi - 1)(random_);
    return std::ldexp((random_() & 1) != 0 ? m : -m, e);
  }

 private:
  std::mt19937_64 random_{20240611};
};

// The long double functions of the C library reduce their argument exactly and have errors of about one of their own
// ulps, 2^-11 of ours.
TEST(ExactMath, SinCosOverWideRanges) {
  AnySize any;
  Worst worst;
  for (int i = 0; i < 400000; ++i) {
    const double x = any(-40, 31);
    const SinCos got = exact_sincos(x);
    worst.see(got.sin, sinl(x));
    worst.see(got.cos, cosl(x));
  }
  EXPECT_LT(worst.normal, 1.0);
  EXPECT_LE(worst.subnormal, 1.0);
}

TEST(ExactMath, SinCosNextToMultiplesOfHalfPi) {
  Worst worst;
  for (int64_t n = 1; n < 1367130551; n = n * 3 / 2 + 1) {  // 2^31 / (pi / 2)
    for (int64_t k = n; k < n + 50; ++k) {
      double x = static_cast<double>(1.5707963267948966192313L * static_cast<long double>(k));
      if (x > 0x1p31) break;
      for (int step = 0; step < 3; ++step, x = std::nextafter(x, 0.0)) {
        worst.see(exact_sincos(x).sin, sinl(x));
        worst.see(exact_sincos(x).cos, cosl(x));
      }
    }
  }
  EXPECT_LT(worst.normal, 1.0);
  EXPECT_LE(worst.subnormal, 1.0);
}

TEST(ExactMath, SinCosSpecialValues) {
  EXPECT_TRUE(std::signbit(exact_sincos(-0.0).sin));
  EXPECT_EQ(exact_sincos(0.0).sin, 0.0);
  EXPECT_EQ(exact_sincos(0.0).cos, 1.0);
  EXPECT_LT(error_ulps(exact_sincos(-0x1p31).sin, sinl(-0x1p31)), 1.0);
  for (double x : {kInf, -kInf, kNan, std::nextafter(0x1p31, kInf)}) {
    EXPECT_TRUE(std::isnan(exact_sincos(x).sin)) << x;
    EXPECT_TRUE(std::isnan(exact_sincos(x).cos)) << x;
  }
}

TEST(ExactMath, ExpOverItsWholeRange) {
  AnySize any;
  std::mt19937_64 random(1);
  Worst worst;
  for (int i = 0; i < 400000; ++i) {
    const double x = i % 2 == 0 ? any(-60, 10) : std::uniform_real_distribution<double>(-746, 710)(random);
    worst.see(exact_exp(x), expl(x));
  }
  EXPECT_LT(worst.normal, 1.0);
  EXPECT_LE(worst.subnormal, 1.0);
}

TEST(ExactMath, ExpSpecialValues) {
  EXPECT_EQ(exact_exp(0.0), 1.0);
  EXPECT_EQ(exact_exp(-0.0), 1.0);
  EXPECT_EQ(exact_exp(kInf), kInf);
  EXPECT_EQ(exact_exp(-kInf), 0.0);
  EXPECT_TRUE(std::isnan(exact_exp(kNan)));
  EXPECT_LT(exact_exp(709.782712893384), kInf);
  EXPECT_EQ(exact_exp(709.7827128933841), kInf);
  EXPECT_EQ(exact_exp(-745.1332191019411), std::numeric_limits<double>::denorm_min());
  EXPECT_EQ(exact_exp(-745.1332191019413), 0.0);
}

TEST(ExactMath, LogOverItsWholeRange) {
  AnySize any;
  std::mt19937_64 random(2);
  Worst worst;
  for (int i = 0; i < 400000; ++i) {
    const double x = i % 2 == 0 ? std::fabs(any(-1074, 1024)) : std::uniform_real_distribution<double>(0.5, 2)(random);
    if (x == 1) continue;
    worst.see(exact_log(x), logl(x));
  }
  EXPECT_LT(worst.normal, 0.51);  // rounded once, from a sum good to 2^-63
}

TEST(ExactMath, LogSpecialValues) {
  EXPECT_EQ(exact_log(1.0), 0.0);
  EXPECT_EQ(exact_log(0.0), -kInf);
  EXPECT_EQ(exact_log(-0.0), -kInf);
  EXPECT_EQ(exact_log(kInf), kInf);
  for (double x : {-1.0, -kInf, kNan}) EXPECT_TRUE(std::isnan(exact_log(x))) << x;
}

TEST(ExactMath, PowOverWideRanges) {
  AnySize any;
  Worst worst;
  int finite = 0;
  for (int i = 0; i < 400000; ++i) {
    const double x = i % 2 == 0 ? std::fabs(any(-1074, 1024)) : 1 + any(-50, -2);
    const double y = any(-8, 12);
    const long double want = powl(x, y);
    worst.see(exact_pow(x, y), want);
    finite += std::isnormal(static_cast<double>(want)) ? 1 : 0;
  }
  EXPECT_LT(worst.normal, 1.0);
  EXPECT_LE(worst.subnormal, 1.0);
  EXPECT_GT(finite, 100000);
}

TEST(ExactMath, PowSpecialValuesAreThoseOfC) {
  const double values[] = {0.0,        -0.0,     0.5,         -0.5,       1.0,    -1.0,    2.0,     -2.0,
                           3.0,        -3.0,     2.5,         -2.5,       0x1p60, -0x1p60, 0x1p-80, 0x1p-1074,
                           -0x1p-1074, 0x1p1023, -0x1p53 - 2, 0x1p53 - 1, kInf,   -kInf,   kNan};
  for (double x : values) {
    for (double y : values) {
      const double want = std::pow(x, y), got = exact_pow(x, y);
      if (std::isnan(want)) {
        EXPECT_TRUE(std::isnan(got)) << x << " ^ " << y;
      } else {
        EXPECT_EQ(std::signbit(got), std::signbit(want)) << x << " ^ " << y;
        EXPECT_LE(error_ulps(got, want), 1.0) << x << " ^ " << y << " = " << got << ", expected " << want;
      }
    }
  }
}

// The bits themselves: a compiler or processor that rounds otherwise shows here.
TEST(ExactMath, KnownBits) {
  uint64_t hash = 14695981039346656037u;
  const auto mix = [&](double v) { hash = (hash ^ std::bit_cast<uint64_t>(v)) * 1099511628211u; };
  for (int i = 1; i < 20000; ++i) {
    const double x = 0.37 * i * i;
    const SinCos sc = exact_sincos(x);
    mix(sc.sin);
    mix(sc.cos);
    mix(exact_exp(0.03 * i - 300));
    mix(exact_log(x));
    mix(exact_pow(x, 0.01 * (i % 977) - 3));
  }
  EXPECT_EQ(hash, 17216105677563452802u);
}

}  // namespace
}  // namespace headrace
