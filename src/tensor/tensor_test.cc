#include "tensor/tensor.h"

#include <gtest/gtest.h>

namespace headrace {
namespace {

TEST(Tensor, BytesOfPlainAndBlockTypes) {
  EXPECT_EQ(tensor_bytes(DType::kF32, {3, 5}), 60);
  EXPECT_EQ(tensor_bytes(DType::kQ4_K, {2, 512}), 2 * 2 * 144);
  EXPECT_EQ(tensor_bytes(DType::kQ4_K, {2, 300}), -1);
  EXPECT_EQ(tensor_bytes(DType::kF32, {}), 4);
  EXPECT_EQ(tensor_bytes(DType::kQ8_0, {}), -1);
}

TEST(Tensor, SizesThatOverflowAreNoSizes) {
  EXPECT_EQ(num_elements({int64_t{1} << 40, int64_t{1} << 40}), -1);
  EXPECT_EQ(num_elements({-1}), -1);
  EXPECT_EQ(tensor_bytes(DType::kF64, {int64_t{1} << 61}), -1);
}

TEST(DType, NamesAndNumbersFindTheirType) {
  EXPECT_EQ(dtype_from_name("Q4_K"), DType::kQ4_K);
  EXPECT_EQ(dtype_from_ggml(14), DType::kQ6_K);
  EXPECT_EQ(dtype_from_ggml(4), std::nullopt);  // removed from GGUF
  EXPECT_EQ(dtype_from_name("Q9"), std::nullopt);
}

}  // namespace
}  // namespace headrace
