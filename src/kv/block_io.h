#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "kv/block_piece.h"
#include "kv/kv_slabs.h"

namespace headrace {

enum class TransferId : uint64_t {};

/// A block in one layer.
struct BlockPlace {
  int32_t layer = 0;  ///< number in the model
  BlockId block{};
};

/// What keeps the blocks of a transfer from being freed, or anything else that should live until it is done.
using BlockOwner = std::shared_ptr<const void>;

struct FinishedTransfer {
  TransferId id{};
  std::vector<BlockPiece> pieces;  ///< of a read, in the order of its places
  BlockOwner owner;
};

/// Reads and writes blocks of a stage's layers as pieces, on a thread and a queue of its own, one transfer after the
/// other in the order in which they were asked for. One verb for moving layers, lower tiers, session files, and
/// prefill apart from decode.
/// A step that wrote a block must be done before the block is read, and a block must be written before a step reads it:
/// the caller sees to that. It also sees to it that a block stays leased until its transfer is done: the owner that it
/// gives is kept until finished() hands it back, in the caller's thread.
/// Threading: one thread asks; the destructor waits for what was asked for.
class BlockIo {
 public:
  /// Borrows both.
  BlockIo(Backend& backend, const KvSlabs& slabs);
  ~BlockIo();
  BlockIo(const BlockIo&) = delete;
  BlockIo& operator=(const BlockIo&) = delete;

  /// kInvalidArgument, and nothing is read, for a layer or block that is not here.
  [[nodiscard]] Result<TransferId> read(std::span<const BlockPlace> places, BlockOwner owner);
  /// kCorrupt, and nothing is written, where a piece has another group, layout or size than its layer here, or where
  /// the layer or block is not here.
  [[nodiscard]] Result<TransferId> write(std::vector<BlockPiece> pieces, BlockOwner owner);
  /// Transfers that have become done since the last call, in order.
  [[nodiscard]] std::vector<FinishedTransfer> finished();
  /// Waits until all that was asked for is done.
  void wait();

 private:
  struct Transfer {
    FinishedTransfer result;
    std::vector<std::byte*> blocks;  // device memory of each piece
    bool write = false;
  };

  /// Index of the layer in the slabs, or nullopt.
  [[nodiscard]] std::optional<size_t> find_layer(int32_t number) const noexcept;
  [[nodiscard]] bool has_block(size_t layer, BlockId block) const noexcept;
  TransferId enqueue(Transfer transfer);
  void work() noexcept;

  Backend& backend_;
  const KvSlabs& slabs_;
  const std::unique_ptr<Queue> queue_;  // the thread's
  uint64_t next_id_ = 1;

  std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_.
  std::deque<Transfer> waiting_;
  std::vector<FinishedTransfer> finished_;
  bool busy_ = false;
  bool stopping_ = false;

  std::thread thread_;
};

}  // namespace headrace
