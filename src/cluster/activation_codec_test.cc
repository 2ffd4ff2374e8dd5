#include "cluster/activation_codec.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <random>
#include <string>

#include "base/byte_order.h"
#include "base/half.h"
#include "cluster/half_lanes.h"

namespace headrace::cluster {
namespace {

constexpr std::array kDtypes{WireDtype::kF32, WireDtype::kBf16, WireDtype::kF16, WireDtype::kInt8};

std::vector<float> random_values(size_t n) {
  std::mt19937 random(7);
  std::normal_distribution<float> normal(0, 30);
  std::vector<float> values(n);
  for (float& value : values) value = normal(random);
  return values;
}

std::vector<std::byte> payload_of(std::span<const float> values, int64_t width, WireDtype dtype) {
  std::vector<std::byte> payload;
  encode_activations(values, width, dtype, payload);
  if (dtype == WireDtype::kF32) {
    const auto data = std::as_bytes(values);
    payload.insert(payload.end(), data.begin(), data.end());
  }
  return payload;
}

TEST(ActivationCodec, RoundTripsInEveryType) {
  for (const WireDtype dtype : kDtypes) {
    for (const int64_t rows : {0, 1, 3}) {
      for (const int64_t width : {1, 7, 64, 577}) {
        const std::vector<float> values = random_values(static_cast<size_t>(rows * width));
        const std::vector<std::byte> payload = payload_of(values, width, dtype);
        EXPECT_EQ(static_cast<int64_t>(payload.size()), activation_payload_bytes(rows, width, dtype));
        std::vector<float> decoded;
        const auto back = decode_activations(payload, rows, width, decoded);
        ASSERT_TRUE(back.ok()) << back.error().message();
        ASSERT_EQ(back.value().size(), values.size());
        for (size_t i = 0; i < values.size(); ++i) {
          const float value = values[i];
          const size_t row = i / static_cast<size_t>(width) * static_cast<size_t>(width);
          float largest = 0;
          for (size_t k = row; k < row + static_cast<size_t>(width); ++k)
            largest = std::max(largest, std::abs(values[k]));
          float expected = value;
          float bound = 0;
          if (dtype == WireDtype::kBf16) expected = bf16_to_f32(f32_to_bf16(value));
          if (dtype == WireDtype::kF16) expected = f16_to_f32(f32_to_f16(value));
          // Half a step of largest / 127; the quotient, the scale and the product are each rounded once, by at most
          // 2^-24 of a number of at most `largest`.
          if (dtype == WireDtype::kInt8) bound = largest * (0.5f / 127 + 3 * 0x1p-24f);
          EXPECT_LE(std::abs(back.value()[i] - expected), bound) << wire_dtype_name(dtype) << ' ' << i;
        }
      }
    }
  }
}

TEST(ActivationCodec, AlignedFloatsAreNotCopied) {
  const std::vector<float> values = random_values(12);
  const std::vector<std::byte> payload = payload_of(values, 4, WireDtype::kF32);
  std::vector<float> decoded;
  const auto back = decode_activations(payload, 3, 4, decoded);
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(static_cast<const void*>(back.value().data()), payload.data() + kActivationPrefixBytes);
  EXPECT_TRUE(decoded.empty());

  std::vector<std::byte> shifted(payload.size() + 1);
  std::copy(payload.begin(), payload.end(), shifted.begin() + 1);
  const auto copied = decode_activations(std::span(shifted).subspan(1), 3, 4, decoded);
  ASSERT_TRUE(copied.ok());
  EXPECT_EQ(copied.value().data(), decoded.data());
  EXPECT_TRUE(std::equal(values.begin(), values.end(), copied.value().begin()));
}

TEST(ActivationCodec, RefusesOtherShapesTruncationAndSurplus) {
  const std::vector<float> values = random_values(12);
  std::vector<float> decoded;
  for (const WireDtype dtype : kDtypes) {
    std::vector<std::byte> payload = payload_of(values, 4, dtype);
    EXPECT_FALSE(decode_activations(payload, 4, 3, decoded).ok());
    EXPECT_FALSE(decode_activations(payload, 2, 4, decoded).ok());
    EXPECT_FALSE(decode_activations(payload, -3, 4, decoded).ok());
    for (size_t n = 0; n < payload.size(); ++n)
      EXPECT_FALSE(decode_activations(std::span(payload).first(n), 3, 4, decoded).ok());
    payload.push_back(std::byte{0});
    EXPECT_FALSE(decode_activations(payload, 3, 4, decoded).ok());
  }
}

TEST(ActivationCodec, RefusesUnknownTypesPaddingAndHugeShapes) {
  const std::vector<std::byte> payload = payload_of(random_values(12), 4, WireDtype::kF32);
  std::vector<float> decoded;
  for (size_t at = 8; at < kActivationPrefixBytes; ++at) {
    std::vector<std::byte> other = payload;
    other[at] = std::byte{4};
    EXPECT_FALSE(decode_activations(other, 3, 4, decoded).ok()) << at;
  }
  std::vector<std::byte> huge = payload;
  store_le(huge.data(), uint32_t{0xffffffff});
  store_le(huge.data() + 4, uint32_t{0xffffffff});
  EXPECT_FALSE(decode_activations(huge, 0xffffffff, 0xffffffff, decoded).ok());
  EXPECT_TRUE(decoded.empty());
}

/// What is not a number must not become one on the way.
TEST(ActivationCodec, NotFiniteValuesStaySo) {
  const float inf = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const float special : {inf, -inf, nan, -nan}) {
    const std::vector<float> values{1, special, 2, 3, 4, 5};
    for (const WireDtype dtype : kDtypes) {
      std::vector<float> decoded;
      const std::vector<std::byte> payload = payload_of(values, 3, dtype);
      const auto back = decode_activations(payload, 2, 3, decoded);
      ASSERT_TRUE(back.ok());
      EXPECT_FALSE(std::isfinite(back.value()[1])) << wire_dtype_name(dtype);
      EXPECT_TRUE(std::isfinite(back.value()[4])) << wire_dtype_name(dtype);
    }
  }
}

TEST(ActivationCodec, Int8OfZerosAndOfTheLeastNumbers) {
  const float least = std::numeric_limits<float>::denorm_min();
  const std::vector<float> values{0, -0.0f, least, -200 * least, 0, 150 * least};
  std::vector<float> decoded;
  const std::vector<std::byte> payload = payload_of(values, 2, WireDtype::kInt8);
  const auto back = decode_activations(payload, 3, 2, decoded);
  ASSERT_TRUE(back.ok());
  for (size_t i = 0; i < values.size(); ++i) EXPECT_LE(std::abs(back.value()[i] - values[i]), 100 * least) << i;
}

TEST(HalfLanes, EqualBaseHalf) {
  for (uint32_t half = 0; half < 0x10000; ++half) {
    const auto bits = static_cast<uint16_t>(half);
    ASSERT_EQ(std::bit_cast<uint32_t>(f16_to_f32_lane(bits)), std::bit_cast<uint32_t>(f16_to_f32(bits))) << half;
    // Around each half: itself, its neighbours in float, and the middle to the next.
    for (const uint32_t shift : {0u, 1u, 0xfffu, 0x1000u, 0x1001u, 0x1fffu}) {
      const float value = std::bit_cast<float>(std::bit_cast<uint32_t>(f16_to_f32(bits)) + shift);
      ASSERT_EQ(f32_to_f16_lane(value), f32_to_f16(value)) << half << ' ' << shift;
    }
  }
  for (uint64_t bits = 0; bits < (uint64_t{1} << 32);
       bits += 2039) {  // a prime: every exponent, mantissas of all kinds
    const float value = std::bit_cast<float>(static_cast<uint32_t>(bits));
    ASSERT_EQ(f32_to_f16_lane(value), f32_to_f16(value)) << bits;
  }
}

TEST(ActivationCodec, NamesAreFoundAgain) {
  for (const WireDtype dtype : kDtypes) EXPECT_EQ(find_wire_dtype(wire_dtype_name(dtype)), dtype);
  EXPECT_EQ(find_wire_dtype("fp8"), std::nullopt);
}

/// Seeds that do not decode would leave the fuzzer to find the format by itself.
TEST(ActivationCodec, FuzzSeedsDecode) {
  int seeds = 0;
  for (const auto& file : std::filesystem::directory_iterator(HR_TEST_DATA "/fuzz/activation_codec_fuzz")) {
    std::ifstream in(file.path(), std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    ASSERT_GE(text.size(), kActivationPrefixBytes);
    std::vector<float> decoded;
    EXPECT_TRUE(decode_activations(std::as_bytes(std::span(text)), load_le<uint32_t>(text.data()),
                                   load_le<uint32_t>(text.data() + 4), decoded)
                    .ok())
        << file.path();
    ++seeds;
  }
  EXPECT_GE(seeds, 5);
}

}  // namespace
}  // namespace headrace::cluster
