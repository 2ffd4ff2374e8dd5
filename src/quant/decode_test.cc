#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <limits>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <string>

#include "base/byte_order.h"
#include "quant/format.h"
#include "quant/golden_quant.h"
#include "quant/test_rows.h"

namespace headrace::quant {
namespace {

std::string read_file(const std::string& name) {
  std::ifstream in(std::string(HR_TEST_DATA) + "/quant/" + name, std::ios::binary);
  EXPECT_TRUE(in.good()) << name;
  return {std::istreambuf_iterator<char>(in), {}};
}

/// A safetensors file of the fixtures, which are trusted: u64 size of the header, JSON header, data.
class Tensors {
 public:
  explicit Tensors(const std::string& name) : file_(read_file(name)) {
    const auto header_bytes = load_le<uint64_t>(file_.data());
    header_ = nlohmann::json::parse(file_.substr(8, header_bytes));
    data_ = file_.data() + 8 + header_bytes;
  }
  std::span<const std::byte> bytes(const std::string& tensor) const {
    const auto& offsets = header_.at(tensor).at("data_offsets");
    const auto begin = offsets[0].get<size_t>(), end = offsets[1].get<size_t>();
    return {reinterpret_cast<const std::byte*>(data_ + begin), end - begin};
  }
  std::vector<float> floats(const std::string& tensor) const {
    const auto from = bytes(tensor);
    std::vector<float> to(from.size() / sizeof(float));
    std::memcpy(to.data(), from.data(), from.size());
    return to;
  }

 private:
  std::string file_;
  nlohmann::json header_;
  const char* data_;
};

nlohmann::json golden_types() { return nlohmann::json::parse(read_file("quant.json")).at("types"); }

const BlockFormat& format_named(const std::string& name) {
  const auto dtype = dtype_from_name(name);
  const BlockFormat* format = dtype ? find_format(*dtype) : nullptr;
  if (!format) throw std::runtime_error("no format " + name);
  return *format;
}

TEST(Decode, GoldensBitExact) {
  int num_types = 0;
  const nlohmann::json types = golden_types();
  for (const auto& [name, facts] : types.items()) {
    SCOPED_TRACE(name);
    const BlockFormat& format = format_named(name);
    const DTypeInfo& info = dtype_info(format.dtype);
    EXPECT_EQ(info.block_elems, facts.at("block_elements").get<int>());
    EXPECT_EQ(info.block_bytes, facts.at("block_bytes").get<int>());
    const Tensors golden(name + ".safetensors");
    const std::vector<float> expected = golden.floats("dequantized");
    const DecodeDifference difference = compare_decoded(format, golden.bytes("blocks"), expected);
    EXPECT_EQ(difference.mismatches, 0) << "first at " << difference.first_mismatch << ", largest "
                                        << difference.largest;
    ++num_types;

    // y is rounded once from the exact sum, so half an ulp; the f64 sums of 512 terms here and there add far less.
    const std::vector<float> x = golden.floats("x"), y = golden.floats("y");
    std::vector<float> row(512);
    for (size_t r = 0; r < y.size(); ++r) {
      format.decode(golden.bytes("blocks").data() + r * row_bytes(format, 512), 512, row.data());
      double sum = 0, magnitude = 0;
      for (size_t i = 0; i < 512; ++i) {
        sum += static_cast<double>(row[i]) * x[i];
        magnitude += std::abs(static_cast<double>(row[i]) * x[i]);
      }
      EXPECT_NEAR(sum, y[r], std::abs(y[r]) * 0x1p-24 + magnitude * 512 * 0x1p-52) << "row " << r;
    }
  }
  EXPECT_EQ(num_types, 24);
}

TEST(Decode, ComparisonSeesOneWrongBit) {
  const Tensors golden("Q4_K.safetensors");
  std::vector<float> expected = golden.floats("dequantized");
  expected[700] = std::nextafter(expected[700], 1e9f);
  const DecodeDifference difference = compare_decoded(format_named("Q4_K"), golden.bytes("blocks"), expected);
  EXPECT_EQ(difference.mismatches, 1);
  EXPECT_EQ(difference.first_mismatch, 700);
  EXPECT_GT(difference.largest, 0);
}

// The types which the fixtures took from the Python package gguf, whose encoders are the simple ones ours follow.
TEST(Encode, SimpleEncodersEqualGguf) {
  const std::vector<float> source = Tensors("source.safetensors").floats("source");
  int num_types = 0;
  const nlohmann::json types = golden_types();
  for (const auto& [name, facts] : types.items()) {
    if (facts.at("quantised_by") != "gguf") continue;
    SCOPED_TRACE(name);
    const BlockFormat& format = format_named(name);
    const Tensors golden(name + ".safetensors");
    const auto expected = golden.bytes("blocks");
    std::vector<std::byte> blocks(expected.size());
    ASSERT_NE(format.encode, nullptr);
    format.encode(source.data(), static_cast<int64_t>(source.size()), blocks.data());
    EXPECT_TRUE(std::equal(blocks.begin(), blocks.end(), expected.begin()));
    ++num_types;
  }
  EXPECT_EQ(num_types, 9);
}

TEST(FormatTable, OrderedAndComplete) {
  for (size_t i = 1; i < all_formats().size(); ++i) EXPECT_LT(all_formats()[i - 1]->dtype, all_formats()[i]->dtype);
  for (const BlockFormat* format : all_formats()) {
    const DTypeInfo& info = dtype_info(format->dtype);
    SCOPED_TRACE(info.name);
    EXPECT_EQ(find_format(format->dtype), format);
    EXPECT_NE(format->decode, nullptr);
    EXPECT_EQ(format->unpack32 != nullptr, info.block_elems == 32);
    EXPECT_EQ(format->unpack256 != nullptr, info.block_elems == 256);
    EXPECT_EQ(info.block_elems % format->scale_elems, 0);
    EXPECT_EQ(format->q_min < format->q_max, format->unpack32 || format->unpack256);
  }
  for (const DType dtype : {DType::kF64, DType::kI32, DType::kU8, DType::kBool, DType::kQ8_1, DType::kQ8_K}) {
    EXPECT_EQ(find_format(dtype), nullptr);
  }
}

bool same(float a, float b) {
  return std::isnan(a) ? std::isnan(b) : std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b);
}

// The products are exact in double, and by the bit counts in block_decode.h in float: any other order of ours would
// show.
float value_of(const UnpackedBlock32& block, bool has_min, int i) {
  const auto product = static_cast<float>(static_cast<double>(block.d) * block.q[i]);
  return has_min ? product + block.m : product;
}
float value_of(const UnpackedBlock256& block, const BlockFormat& format, int i) {
  const int sub = i / format.scale_elems;
  const auto product = static_cast<float>(static_cast<double>(block.d) * block.scale[sub] * block.q[i]);
  return format.has_min ? product - static_cast<float>(static_cast<double>(block.dmin) * block.min[sub]) : product;
}

// All bit patterns are valid. The block fills its allocation, so that the address sanitizer sees a byte read past it.
TEST(Decode, RandomBytesAndUnpackedValues) {
  std::mt19937 random(20);
  for (const BlockFormat* format : all_formats()) {
    const DTypeInfo& info = dtype_info(format->dtype);
    SCOPED_TRACE(info.name);
    const auto num_bytes = static_cast<size_t>(info.block_bytes);
    int q_min = 127, q_max = -128;
    bool non_finite = false;
    for (int round = 0; round < 3000; ++round) {
      const auto block = std::make_unique<std::byte[]>(num_bytes);
      for (size_t i = 0; i < num_bytes; ++i) {
        block[i] = static_cast<std::byte>(round == 0 ? 0 : round == 1 ? 255 : static_cast<int>(random() & 255));
      }
      std::vector<float> decoded(static_cast<size_t>(info.block_elems));
      format->decode(block.get(), info.block_elems, decoded.data());
      for (const float w : decoded) non_finite |= !std::isfinite(w);
      if (format->unpack32) {
        UnpackedBlock32 unpacked;
        format->unpack32(block.get(), unpacked);
        for (int i = 0; i < 32; ++i) {
          ASSERT_TRUE(same(decoded[static_cast<size_t>(i)], value_of(unpacked, format->has_min, i)))
              << round << " " << i;
          q_min = std::min<int>(q_min, unpacked.q[i]);
          q_max = std::max<int>(q_max, unpacked.q[i]);
        }
        ASSERT_TRUE(format->has_min || unpacked.m == 0);
      }
      if (format->unpack256) {
        UnpackedBlock256 unpacked;
        std::memset(&unpacked, 0x55, sizeof(unpacked));
        format->unpack256(block.get(), unpacked);
        for (int i = 0; i < 256; ++i) {
          ASSERT_TRUE(same(decoded[static_cast<size_t>(i)], value_of(unpacked, *format, i))) << round << " " << i;
          q_min = std::min<int>(q_min, unpacked.q[i]);
          q_max = std::max<int>(q_max, unpacked.q[i]);
        }
        for (int s = format->has_min ? 256 / format->scale_elems : 0; s < 16; ++s) ASSERT_EQ(unpacked.min[s], 0);
        for (int s = 256 / format->scale_elems; s < 16; ++s) ASSERT_EQ(unpacked.scale[s], 0);
        ASSERT_TRUE(format->has_min || unpacked.dmin == 0);
      }
    }
    if (format->unpack32 || format->unpack256) {
      EXPECT_EQ(q_min, format->q_min);
      EXPECT_EQ(q_max, format->q_max);
    }
    const bool always_finite = format->dtype == DType::kNVFP4;  // its scales have neither infinity nor NaN
    EXPECT_EQ(non_finite, !always_finite);
  }
}

TEST(Decode, AnyAlignmentAndManyBlocks) {
  std::mt19937 random(21);
  for (const BlockFormat* format : all_formats()) {
    SCOPED_TRACE(dtype_name(format->dtype));
    const size_t num_bytes = row_bytes(*format, 1024);
    std::vector<std::byte> row(num_bytes);
    for (std::byte& b : row) b = static_cast<std::byte>(random() & 255);
    std::vector<float> whole(1024), part(1024);
    format->decode(row.data(), 1024, whole.data());
    for (size_t shift = 1; shift < 4; ++shift) {
      std::vector<std::byte> shifted(num_bytes + shift);
      std::copy(row.begin(), row.end(), shifted.begin() + static_cast<std::ptrdiff_t>(shift));
      format->decode(shifted.data() + shift, 256, part.data());
      format->decode(shifted.data() + shift + row_bytes(*format, 256), 768, part.data() + 256);
      EXPECT_EQ(std::memcmp(whole.data(), part.data(), 1024 * sizeof(float)), 0);
    }
  }
}

// OFP8 revision 1.0, tables 1 and 2: greatest, least normal and least subnormal numbers, special codes.
TEST(Decode, EightBitFloats) {
  const auto decode = [](DType dtype, int code) {
    const auto byte = static_cast<std::byte>(code);
    float value = 0;
    find_format(dtype)->decode(&byte, 1, &value);
    return value;
  };
  const std::map<int, float> e4m3{{0x00, 0.0f}, {0x01, 0x1p-9f}, {0x07, 0.875f * 0x1p-6f}, {0x08, 0x1p-6f},
                                  {0x38, 1.0f}, {0x7e, 448.0f},  {0xfe, -448.0f},          {0xb9, -1.125f}};
  for (const auto& [code, value] : e4m3) EXPECT_EQ(decode(DType::kF8E4M3, code), value) << code;
  EXPECT_TRUE(std::isnan(decode(DType::kF8E4M3, 0x7f)));
  EXPECT_TRUE(std::isnan(decode(DType::kF8E4M3, 0xff)));
  EXPECT_TRUE(std::signbit(decode(DType::kF8E4M3, 0x80)));
  const std::map<int, float> e5m2{{0x00, 0.0f},  {0x01, 0x1p-16f}, {0x04, 0x1p-14f},
                                  {0x3c, 1.0f},  {0x7b, 57344.0f}, {0x7c, std::numeric_limits<float>::infinity()},
                                  {0xbd, -1.25f}};
  for (const auto& [code, value] : e5m2) EXPECT_EQ(decode(DType::kF8E5M2, code), value) << code;
  EXPECT_TRUE(std::isnan(decode(DType::kF8E5M2, 0x7f)));
}

}  // namespace
}  // namespace headrace::quant
