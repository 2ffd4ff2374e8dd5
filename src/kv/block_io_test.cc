#include "kv/block_io.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>

#include "backend/cpu/cpu_backend.h"
#include "backend/fakedev/fakedev_backend.h"

namespace headrace {
namespace {

std::vector<KvSlabs::Layer> layers(DType dtype, int32_t num_blocks = 8) {
  const KvLayout wide{.dtype = dtype, .kv_heads = 2, .head_dim = 16, .v_head_dim = 16};
  const KvLayout odd{.dtype = dtype, .kv_heads = 1, .head_dim = 5, .v_head_dim = 3};
  return {{.number = 4, .group = 0, .layout = wide, .num_blocks = num_blocks},
          {.number = 5, .group = 1, .layout = odd, .num_blocks = num_blocks},
          {.number = 6, .group = 0, .layout = odd, .num_blocks = num_blocks}};
}

std::vector<BlockPiece> random_pieces(DType dtype) {
  std::mt19937 random(1);
  std::vector<BlockPiece> pieces;
  for (const KvSlabs::Layer& layer : layers(dtype)) {
    for (const int32_t block : {0, 3, 7}) {
      BlockPiece& piece = pieces.emplace_back(BlockPiece{
          .layer = layer.number, .group = layer.group, .block = BlockId{block}, .layout = layer.layout, .bytes = {}});
      piece.bytes.resize(static_cast<size_t>(kv_block_bytes(layer.layout)));
      for (std::byte& byte : piece.bytes) byte = static_cast<std::byte>(random());
    }
  }
  return pieces;
}

std::vector<BlockPlace> places_of(const std::vector<BlockPiece>& pieces) {
  std::vector<BlockPlace> places;
  for (const BlockPiece& piece : pieces) places.push_back({.layer = piece.layer, .block = piece.block});
  return places;
}

/// The blocks at these places.
std::vector<BlockPiece> read_now(BlockIo& io, std::span<const BlockPlace> places) {
  EXPECT_TRUE(io.read(places, nullptr).ok());
  io.wait();
  return io.finished().back().pieces;
}

class BlockIoTest : public testing::TestWithParam<DType> {
 protected:
  ComputePool pool_{1};
  const std::unique_ptr<Backend> cpu_ = make_cpu_backend(pool_, Isa::kRef);
  const std::unique_ptr<Backend> fakedev_ = make_fakedev_backend(int64_t{1} << 20);
};
INSTANTIATE_TEST_SUITE_P(KvTypes, BlockIoTest, testing::ValuesIn(kKvDTypes),
                         [](const auto& test) { return std::string(dtype_name(test.param)); });

TEST_P(BlockIoTest, WhatIsWrittenIsReadAgainAndNothingElseIsTouched) {
  const std::vector<BlockPiece> pieces = random_pieces(GetParam());
  for (Backend* backend : {cpu_.get(), fakedev_.get()}) {
    const KvSlabs slabs(*backend, layers(GetParam()));
    BlockIo io(*backend, slabs);
    const auto write = io.write(pieces, nullptr);
    ASSERT_TRUE(write.ok());
    const auto read = io.read(places_of(pieces), nullptr);
    const BlockPlace beside[] = {{.layer = 4, .block = BlockId{2}}, {.layer = 4, .block = BlockId{4}}};
    const auto others = io.read(beside, nullptr);
    io.wait();
    const std::vector<FinishedTransfer> done = io.finished();
    ASSERT_EQ(done.size(), 3u);
    EXPECT_EQ(done[0].id, write.value());
    EXPECT_TRUE(done[0].pieces.empty());
    EXPECT_EQ(done[1].id, read.value());
    EXPECT_EQ(done[1].pieces, pieces);
    EXPECT_EQ(done[2].id, others.value());
    for (const BlockPiece& piece : done[2].pieces) EXPECT_THAT(piece.bytes, testing::Each(std::byte{0}));
    EXPECT_TRUE(io.finished().empty());
  }
}

TEST_P(BlockIoTest, MovesBlocksToAnotherDeviceThroughBytes) {
  const std::vector<BlockPiece> pieces = random_pieces(GetParam());
  std::vector<std::byte> bytes;
  encode_pieces(pieces, bytes);
  Result<std::vector<BlockPiece>> decoded = decode_pieces(bytes);
  ASSERT_TRUE(decoded.ok());
  EXPECT_EQ(decoded.value(), pieces);
  for (BlockPiece& piece : decoded.value()) piece.block = BlockId{raw(piece.block) ^ 1};
  const KvSlabs slabs(*fakedev_, layers(GetParam()));
  BlockIo io(*fakedev_, slabs);
  ASSERT_TRUE(io.write(decoded.value(), nullptr).ok());
  EXPECT_EQ(read_now(io, places_of(decoded.value())), decoded.value());
}

TEST_P(BlockIoTest, RefusesTagsOfAnotherCacheAndWritesNothing) {
  const KvSlabs slabs(*cpu_, layers(GetParam()));
  BlockIo io(*cpu_, slabs);
  const auto refused = [&](auto&& spoil) {
    std::vector<BlockPiece> pieces = random_pieces(GetParam());
    spoil(pieces.back());
    const auto result = io.write(pieces, nullptr);
    return !result.ok() && result.error().code() == ErrorCode::kCorrupt;
  };
  EXPECT_TRUE(refused([](BlockPiece& p) { p.layer = 3; }));
  EXPECT_TRUE(refused([](BlockPiece& p) { p.layer = 4; })) << "another layout";
  EXPECT_TRUE(refused([](BlockPiece& p) { p.group = 1; }));
  EXPECT_TRUE(refused([](BlockPiece& p) { p.block = BlockId{8}; }));
  EXPECT_TRUE(refused([](BlockPiece& p) { p.block = BlockId{-1}; }));
  EXPECT_TRUE(refused([](BlockPiece& p) { p.layout.dtype = DType::kQ8_0; }));
  EXPECT_TRUE(refused([](BlockPiece& p) { p.layout.v_head_dim = 4; }));
  EXPECT_TRUE(refused([](BlockPiece& p) { p.bytes.pop_back(); }));
  for (const BlockPlace place : {BlockPlace{3, BlockId{0}}, {4, BlockId{8}}, {4, BlockId{-1}}}) {
    EXPECT_EQ(io.read({{place}}, nullptr).error().code(), ErrorCode::kInvalidArgument);
  }
  for (const BlockPiece& piece : read_now(io, places_of(random_pieces(GetParam()))))
    EXPECT_THAT(piece.bytes, testing::Each(std::byte{0}));
}

TEST_P(BlockIoTest, TheOwnerLivesUntilItIsHandedBack) {
  auto owner = std::make_shared<int>(0);
  const std::weak_ptr<int> seen = owner;
  const KvSlabs slabs(*fakedev_, layers(GetParam()));
  BlockIo io(*fakedev_, slabs);
  ASSERT_TRUE(io.write(random_pieces(GetParam()), std::move(owner)).ok());
  io.wait();
  EXPECT_FALSE(seen.expired());
  EXPECT_EQ(io.finished().size(), 1u);
  EXPECT_TRUE(seen.expired());
}

TEST_P(BlockIoTest, TheDestructorWaitsForWhatWasAskedFor) {
  const std::vector<BlockPiece> pieces = random_pieces(GetParam());
  const KvSlabs slabs(*fakedev_, layers(GetParam()));
  {
    BlockIo io(*fakedev_, slabs);
    for (int i = 0; i < 20; ++i) ASSERT_TRUE(io.write(pieces, nullptr).ok());
  }
  BlockIo io(*fakedev_, slabs);
  EXPECT_EQ(read_now(io, places_of(pieces)), pieces);
}

TEST(BlockPiece, RefusesBytesThatAreNoPieces) {
  std::vector<BlockPiece> pieces = random_pieces(DType::kI8);
  pieces.resize(2);
  std::vector<std::byte> bytes;
  encode_pieces(pieces, bytes);
  for (size_t n = 0; n < bytes.size(); ++n) ASSERT_FALSE(decode_pieces(std::span(bytes).first(n)).ok()) << n;
  const auto refused = [&](size_t at, uint8_t value) {
    std::vector<std::byte> spoilt = bytes;
    spoilt.at(at) = std::byte{value};
    return !decode_pieces(spoilt).ok();
  };
  EXPECT_TRUE(refused(0, 9)) << "version";
  EXPECT_TRUE(refused(2, 1)) << "padding";
  EXPECT_TRUE(refused(7, 0xff)) << "a count that nothing can hold";
  constexpr size_t kDType = 8 + 12;
  EXPECT_TRUE(refused(kDType, 4)) << "no such type";
  EXPECT_TRUE(refused(kDType, 0)) << "a type that takes other bytes";
  EXPECT_TRUE(refused(kDType + 4, 0)) << "no heads";
  EXPECT_TRUE(refused(kDType + 7, 0x7f)) << "heads whose bytes overflow";
  EXPECT_TRUE(refused(kDType + 11, 0x80)) << "a negative dimension";
  EXPECT_TRUE(refused(kDType + 12, 15)) << "another dimension";
  EXPECT_TRUE(refused(kDType + 16, 1)) << "other bytes than the layout's";
  bytes.push_back(std::byte{0});
  EXPECT_FALSE(decode_pieces(bytes).ok());
}

TEST(BlockPiece, FuzzSeedsArePieces) {
  int seeds = 0;
  for (const auto& file : std::filesystem::directory_iterator(HR_TEST_DATA "/fuzz/block_piece_fuzz")) {
    std::ifstream in(file.path(), std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    EXPECT_TRUE(decode_pieces(std::as_bytes(std::span(text))).ok()) << file.path();
    ++seeds;
  }
  EXPECT_GE(seeds, 4);
}

}  // namespace
}  // namespace headrace
