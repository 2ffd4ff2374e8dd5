#include "ops/embed.h"

#include "ops/recipe.h"
#include "ops/weight_test.h"

namespace headrace {
namespace {

OP_TEST(Embed, TakesScaledRows, kEmbed) {
  constexpr int64_t kVocab = 40, kDim = 512;
  const std::vector<TokenId> tokens{39, 0, 7, 7, 16};
  for (DType dtype : {DType::kF32, DType::kBF16, DType::kQ4_1, DType::kQ6_K, DType::kIQ3_S}) {
    for (WeightLayout layout : kAllWeightLayouts) {
      if (layout_recipe(layout, dtype) == nullptr) continue;
      const std::vector<std::byte> rows = random_file_rows(dtype, kVocab, kDim, WeightBits::kFinite, seed());
      const PackedWeights table(dtype, layout, kVocab, kDim, rows);
      Rows got(std::ssize(tokens), kDim), want(std::ssize(tokens), kDim);
      const EmbedArgs args{
          .table = table.view(), .tokens = tokens.data(), .y = got.data(), .rows = got.rows(), .scale = 1.7f};
      fn()(args, {2, got.rows()});
      fn()(args, {0, 2});
      for (int64_t r = 0; r < want.rows(); ++r) {
        find_format(dtype)->decode(rows.data() + tokens[static_cast<size_t>(r)] * file_row_bytes(dtype, kDim), kDim,
                                   want.row(r));
        for (int64_t i = 0; i < kDim; ++i) want.row(r)[i] = 1.7f * want.row(r)[i];
      }
      expect_bit_equal(label(cat(dtype_name(dtype), " ", weight_layout_name(layout))), got.span(), want.span());
    }
  }
}

}  // namespace
}  // namespace headrace
