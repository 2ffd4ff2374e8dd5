#include "engine/tuning_file.h"

#include <gtest/gtest.h>

#include <fstream>

#include "base/build_id.h"
#include "base/error.h"

namespace headrace {
namespace {

namespace fs = std::filesystem;

class TuningFile : public testing::Test {
 protected:
  TuningFile() : folder_(fs::path(testing::TempDir()) / "headrace-tuning") { fs::remove_all(folder_); }
  ~TuningFile() override { fs::remove_all(folder_); }
  [[nodiscard]] fs::path path() const { return folder_ / "deep" / "choices.json"; }
  void write(const std::string& text) {
    fs::create_directories(path().parent_path());
    std::ofstream(path()) << text;
  }

  fs::path folder_;
};

constexpr auto kLayout = WeightLayout::kInterleaved16;

TEST_F(TuningFile, KeepsChoicesAndReplacesThoseOfKindsTriedAgain) {
  EXPECT_TRUE(load_tuning(path()).empty());
  const CpuTuning first{{{DType::kQ4_K, kLayout, RowClass::k1}, {.isa = Isa::kAvx2, .grain = 4}},
                        {{DType::kQ8_0, kLayout, RowClass::k65Up}, {.isa = Isa::kAvx512, .grain = 1}}};
  save_tuning(path(), first, {{DType::kQ4_K, kLayout}, {DType::kQ8_0, kLayout}});
  EXPECT_EQ(load_tuning(path()), first);

  const CpuTuning second{{{DType::kQ4_K, kLayout, RowClass::k2To4}, {.isa = Isa::kAvx2, .grain = 16}}};
  save_tuning(path(), second, {{DType::kQ4_K, kLayout}});
  CpuTuning want = second;
  want.insert(*first.find({DType::kQ8_0, kLayout, RowClass::k65Up}));
  EXPECT_EQ(load_tuning(path()), want);
}

TEST_F(TuningFile, WhatMakesNoSenseIsNotUsed) {
  for (const char* text :
       {"", "{", "[]", "{}", R"({"matmul": 3})", R"({"matmul": [{}]})",
        R"({"matmul": [{"type": "Q9", "layout": "rows", "rows": "1", "isa": "avx2", "grain": 1}]})",
        R"({"matmul": [{"type": "Q4_K", "layout": "rows", "rows": "1", "isa": "avx2", "grain": "1"}]})"}) {
    write(text);
    EXPECT_TRUE(load_tuning(path()).empty()) << text;
  }
  write(R"({"matmul": [{"type": "Q4_K", "layout": "rows", "rows": "1", "isa": "avx2", "grain": -7}]})");
  const CpuTuning clamped{{{DType::kQ4_K, WeightLayout::kRows, RowClass::k1}, {.isa = Isa::kAvx2, .grain = 1}}};
  EXPECT_EQ(load_tuning(path()), clamped);
}

TEST_F(TuningFile, AFolderThatCannotBeMadeIsAnError) {
  fs::create_directories(folder_);
  std::ofstream(folder_ / "deep") << "a file";
  EXPECT_THROW(save_tuning(path(), {}, {}), Error);
}

TEST(TuningPath, DiffersByThreadsAndInstructionSet) {
  const auto path = tuning_path(Isa::kAvx2, 2);
  ASSERT_TRUE(path.has_value()) << "neither HEADRACE_CACHE nor HOME is set";
  EXPECT_EQ(path, tuning_path(Isa::kAvx2, 2));
  EXPECT_NE(path, tuning_path(Isa::kAvx2, 3));
  EXPECT_NE(path, tuning_path(Isa::kRef, 2));
}

TEST(BuildId, IsHexadecimal) {
  const std::string id = build_id();
  EXPECT_GE(id.size(), 16u) << "the linker was to leave one";
  EXPECT_EQ(id.find_first_not_of("0123456789abcdef"), std::string::npos);
}

}  // namespace
}  // namespace headrace
