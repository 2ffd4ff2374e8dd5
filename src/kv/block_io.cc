#include "kv/block_io.h"

#include <utility>

namespace headrace {

BlockIo::BlockIo(Backend& backend, const KvSlabs& slabs)
    : backend_(backend), slabs_(slabs), queue_(backend.make_queue()), thread_([this] { work(); }) {}

BlockIo::~BlockIo() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

std::optional<size_t> BlockIo::find_layer(int32_t number) const noexcept {
  for (size_t i = 0; i < slabs_.layers().size(); ++i) {
    if (slabs_.layers()[i].number == number) return i;
  }
  return std::nullopt;
}

bool BlockIo::has_block(size_t layer, BlockId block) const noexcept {
  return raw(block) >= 0 && raw(block) < slabs_.layers()[layer].num_blocks;
}

Result<TransferId> BlockIo::read(std::span<const BlockPlace> places, BlockOwner owner) {
  Transfer transfer{.result = {.id = {}, .pieces = {}, .owner = std::move(owner)}, .blocks = {}, .write = false};
  for (const BlockPlace& place : places) {
    const std::optional<size_t> layer = find_layer(place.layer);
    if (!layer || !has_block(*layer, place.block)) {
      return Error(ErrorCode::kInvalidArgument,
                   cat("block ", raw(place.block), " of layer ", place.layer, " is not in this cache"));
    }
    const KvLayout& layout = slabs_.layout(*layer);
    transfer.blocks.push_back(slabs_.block(*layer, place.block));
    transfer.result.pieces.push_back({.layer = place.layer,
                                      .group = slabs_.layers()[*layer].group,
                                      .block = place.block,
                                      .layout = layout,
                                      .bytes = std::vector<std::byte>(static_cast<size_t>(kv_block_bytes(layout)))});
  }
  return enqueue(std::move(transfer));
}

Result<TransferId> BlockIo::write(std::vector<BlockPiece> pieces, BlockOwner owner) {
  Transfer transfer{.result = {.id = {}, .pieces = {}, .owner = std::move(owner)}, .blocks = {}, .write = true};
  for (const BlockPiece& piece : pieces) {
    const std::optional<size_t> layer = find_layer(piece.layer);
    if (!layer || !has_block(*layer, piece.block)) {
      return Error(ErrorCode::kCorrupt,
                   cat("block ", raw(piece.block), " of layer ", piece.layer, " is not in this cache"));
    }
    const KvSlabs::Layer& here = slabs_.layers()[*layer];
    if (piece.group != here.group || !(piece.layout == here.layout) ||
        std::ssize(piece.bytes) != kv_block_bytes(here.layout)) {
      return Error(ErrorCode::kCorrupt,
                   cat("block of layer ", piece.layer, ": group ", piece.group, ", ", dtype_name(piece.layout.dtype),
                       ", ", piece.bytes.size(), " bytes; this cache has group ", here.group, ", ",
                       dtype_name(here.layout.dtype), ", ", kv_block_bytes(here.layout)));
    }
    transfer.blocks.push_back(slabs_.block(*layer, piece.block));
  }
  transfer.result.pieces = std::move(pieces);
  return enqueue(std::move(transfer));
}

TransferId BlockIo::enqueue(Transfer transfer) {
  const TransferId id{next_id_++};
  transfer.result.id = id;
  {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(std::move(transfer));
  }
  changed_.notify_all();
  return id;
}

std::vector<FinishedTransfer> BlockIo::finished() {
  const std::lock_guard lock(mutex_);
  return std::exchange(finished_, {});
}

void BlockIo::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return waiting_.empty() && !busy_; });
}

void BlockIo::work() noexcept {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stopping_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    Transfer transfer = std::move(waiting_.front());
    waiting_.pop_front();
    busy_ = true;
    lock.unlock();
    for (size_t i = 0; i < transfer.blocks.size(); ++i) {
      std::vector<std::byte>& bytes = transfer.result.pieces[i].bytes;
      if (transfer.write) {
        backend_.upload(*queue_, transfer.blocks[i], bytes.data(), std::ssize(bytes));
      } else {
        backend_.download(*queue_, bytes.data(), transfer.blocks[i], std::ssize(bytes));
      }
    }
    queue_->synchronize();
    if (transfer.write) transfer.result.pieces.clear();
    lock.lock();
    finished_.push_back(std::move(transfer.result));
    busy_ = false;
    changed_.notify_all();
  }
}

}  // namespace headrace
