// Scenario B11: prompts computed in one cache go on in another, and many of them are given up on the way.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "backend/cpu/cpu_backend.h"
#include "kv/block_io.h"
#include "kv/block_pool.h"

namespace headrace {
namespace {

constexpr int32_t kBlocks = 12;  // few, so that a block that is given back is taken again at once
constexpr KvLayout kLayout{.dtype = DType::kF32, .kv_heads = 2, .head_dim = 16, .v_head_dim = 16};

/// Blocks that are given back when nobody needs them any more.
class Lease {
 public:
  Lease(BlockPool& pool, int num_blocks) : pool_(pool) {
    for (int i = 0; i < num_blocks; ++i) blocks.push_back(pool.lease());
  }
  ~Lease() {
    for (const BlockId block : blocks) pool_.release(block);
  }
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;

  std::vector<BlockId> blocks;

 private:
  BlockPool& pool_;
};

/// A cache with what steps do to it.
struct Cache {
  explicit Cache(Backend& backend)
      : slabs(backend, {{.number = 0, .group = 0, .layout = kLayout, .num_blocks = kBlocks}}), io(backend, slabs) {}

  /// Words of 32 bits that name request and block.
  void compute(int request, const std::vector<BlockId>& blocks) {
    for (size_t i = 0; i < blocks.size(); ++i) std::ranges::fill(words(blocks[i]), word_of(request, i));
  }
  [[nodiscard]] bool holds(int request, const std::vector<BlockId>& blocks) {
    for (size_t i = 0; i < blocks.size(); ++i) {
      for (const int32_t word : words(blocks[i])) {
        if (word != word_of(request, i)) return false;
      }
    }
    return true;
  }

  BlockPool pool{kBlocks};
  KvSlabs slabs;
  BlockIo io;

 private:
  [[nodiscard]] static int32_t word_of(int request, size_t index) { return request * 8 + static_cast<int32_t>(index); }
  [[nodiscard]] std::span<int32_t> words(BlockId block) {
    return {reinterpret_cast<int32_t*>(slabs.block(0, block)), static_cast<size_t>(kv_block_bytes(kLayout)) / 4};
  }
};

/// Requests on their way from one cache to the other, beside some that are computed in the other from the start.
class Handover {
 public:
  explicit Handover(Backend& backend) : prefill_(backend), decode_(backend) {}

  /// The prompt is computed, and its blocks belong to nobody but the transfer.
  void begin(int request, int num_blocks) {
    if (prefill_.pool.free() < num_blocks) return;
    const auto lease = std::make_shared<Lease>(prefill_.pool, num_blocks);
    prefill_.compute(request, lease->blocks);
    std::vector<BlockPlace> places;
    for (const BlockId block : lease->blocks) places.push_back({.layer = 0, .block = block});
    const auto read = prefill_.io.read(places, lease);
    ASSERT_TRUE(read.ok());
    reading_[read.value()] = request;
  }

  /// One that needs no transfer; it is looked at again by check_local().
  void begin_local(int request, int num_blocks) {
    if (local_ || decode_.pool.free() < num_blocks) return;
    local_ = {request, std::make_shared<Lease>(decode_.pool, num_blocks)};
    decode_.compute(request, local_->lease->blocks);
  }
  void check_local() {
    if (local_) check(*local_);
    local_.reset();
  }

  /// Gives up one that is on its way, if there is one; true: it did.
  bool abort(std::mt19937& random) {
    const size_t live = reading_.size() + writing_.size();
    if (live == 0) return false;
    const auto index = static_cast<std::ptrdiff_t>(random() % live);
    const std::ptrdiff_t reading = std::ssize(reading_);
    if (index < reading) {
      reading_.erase(std::next(reading_.begin(), index));
    } else {
      writing_.erase(std::next(writing_.begin(), index - reading));
    }
    return true;
  }

  void advance() {
    for (FinishedTransfer& read : prefill_.io.finished()) {
      const auto request = reading_.extract(read.id);
      if (!request.empty()) pass_on(request.mapped(), std::move(read.pieces));  // empty: given up
    }
    for (const FinishedTransfer& write : decode_.io.finished()) {
      const auto live = writing_.extract(write.id);
      if (!live.empty()) check(live.mapped());
    }
  }

  void finish() {
    prefill_.io.wait();
    advance();
    decode_.io.wait();
    advance();
    check_local();
  }

  [[nodiscard]] int outputs() const { return outputs_; }
  [[nodiscard]] int wrong() const { return wrong_; }
  [[nodiscard]] int leased() const { return prefill_.pool.leased() + decode_.pool.leased(); }

 private:
  struct Live {
    int request;
    std::shared_ptr<Lease> lease;
  };

  void pass_on(int request, std::vector<BlockPiece> pieces) {
    const int num_blocks = static_cast<int>(pieces.size());
    if (decode_.pool.free() < num_blocks) return;
    const auto lease = std::make_shared<Lease>(decode_.pool, num_blocks);
    for (size_t i = 0; i < pieces.size(); ++i) pieces[i].block = lease->blocks[i];
    const auto write = decode_.io.write(std::move(pieces), lease);
    ASSERT_TRUE(write.ok());
    writing_[write.value()] = {request, lease};
  }

  void check(const Live& live) {
    wrong_ += decode_.holds(live.request, live.lease->blocks) ? 0 : 1;
    ++outputs_;
  }

  Cache prefill_, decode_;
  std::map<TransferId, int> reading_;
  std::map<TransferId, Live> writing_;
  std::optional<Live> local_;
  int outputs_ = 0, wrong_ = 0;
};

TEST(BlockIoAborts, B11_AThousandAbortsAndNoWrongOutput) {
  ComputePool pool(1);
  const std::unique_ptr<Backend> backend = make_cpu_backend(pool, Isa::kRef);
  Handover handover(*backend);
  std::mt19937 random(11);
  int request = 0;
  for (int aborts = 0; aborts < 1000;) {
    handover.begin(++request, 1 + static_cast<int>(random() % 4));
    handover.begin_local(++request, 1 + static_cast<int>(random() % 4));
    if (random() % 4 == 0) std::this_thread::yield();
    handover.advance();
    if (random() % 2 == 0 && handover.abort(random)) ++aborts;
    if (random() % 4 == 0) handover.check_local();
  }
  handover.finish();
  EXPECT_EQ(handover.wrong(), 0);
  EXPECT_GT(handover.outputs(), 100);
  EXPECT_EQ(handover.leased(), 0) << "every block is back";
}

}  // namespace
}  // namespace headrace
