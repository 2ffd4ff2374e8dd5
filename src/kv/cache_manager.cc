#include "kv/cache_manager.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/check.h"
#include "kv/cache_size.h"

namespace headrace {
namespace {

/// Nodes for each block that there is. A model without full groups has nodes whose blocks were given up one by one,
/// which lead to others that have some: this bounds them. A node takes some hundred bytes, a block tens of thousands.
constexpr int64_t kMostNodesPerBlock = 8;

}  // namespace

CacheManager::CacheManager(const CacheConfig& config)
    : block_tokens_(config.block_tokens),
      prefix_caching_(config.prefix_caching),
      tree_(config.block_tokens, static_cast<int32_t>(config.groups.size())) {
  HR_CHECK(block_tokens_ > 0 && !config.groups.empty(), config.groups.size(), " groups of blocks of ", block_tokens_);
  for (const CacheGroupConfig& group : config.groups) {
    HR_CHECK(group.num_blocks > 0 && group.window >= 0, group.num_blocks, " blocks, window ", group.window);
    groups_.emplace_back(group.num_blocks, group.window);
  }
  reserve_nodes();
}

int32_t CacheManager::open(SequenceId id, std::span<const TokenId> tokens, uint64_t salt) {
  Sequence& sequence = add(id);
  sequence.salt = salt;
  sequence.findable = prefix_caching_;
  sequence.path = longest_prefix(tokens, salt);
  const auto found = static_cast<int32_t>(sequence.path.size());
  sequence.submitted = found * block_tokens_;
  for (const NodeId node : sequence.path) tree_.enter(node);
  for (size_t g = 0; g < groups_.size(); ++g) {
    GroupTable& table = sequence.tables[g];
    table.first_held = groups_[g].first_seen(sequence.submitted) / block_tokens_;
    table.blocks.assign(static_cast<size_t>(table.first_held), BlockId{0});
    for (int32_t i = table.first_held; i < found; ++i) {
      table.blocks.push_back(tree_.blocks(sequence.path[static_cast<size_t>(i)])[g]);
    }
  }
  hold_all(sequence.tables);
  query_tokens_ += std::ssize(tokens);
  hit_tokens_ += sequence.submitted;
  return sequence.submitted;
}

bool CacheManager::reserve(SequenceId id, int32_t end, int32_t expected) {
  Sequence& sequence = find(id);
  const auto missing = [&](size_t g) {
    const int32_t needed = blocks_for(groups_[g].full() ? std::max(end, expected) : end);
    return std::max(0, needed - static_cast<int32_t>(sequence.tables[g].blocks.size()));
  };
  for (size_t g = 0; g < groups_.size(); ++g) {
    if (missing(g) > available_blocks(groups_[g])) return false;
  }
  for (size_t g = 0; g < groups_.size(); ++g) {
    const int32_t count = missing(g);
    for (int32_t i = 0; i < count; ++i) sequence.tables[g].blocks.push_back(take_block(groups_[g]));
    unfilled_tokens_ += int64_t{count} * block_tokens_;
  }
  return true;
}

void CacheManager::submitted(SequenceId id, std::span<const TokenId> tokens, int32_t end) {
  Sequence& sequence = find(id);
  HR_CHECK(end >= sequence.submitted && end <= std::ssize(tokens), "sequence ", raw(id), ": ", sequence.submitted,
           " positions, then ", end, " of ", tokens.size(), " tokens");
  for (const GroupTable& table : sequence.tables) {
    HR_CHECK(end <= std::ssize(table.blocks) * block_tokens_, "sequence ", raw(id), ": ", end, " positions in ",
             table.blocks.size(), " blocks");
    unfilled_tokens_ -= end - sequence.submitted;
  }
  sequence.submitted = end;
  if (sequence.findable) make_findable(sequence, tokens);
  drop_unseen(sequence);
}

std::optional<std::vector<BlockCopy>> CacheManager::fork(SequenceId parent_id, SequenceId child_id, int32_t length) {
  const Sequence& parent = find(parent_id);
  HR_CHECK(length >= 0 && length <= parent.submitted, "fork of sequence ", raw(parent_id), " at ", length, " of ",
           parent.submitted, " positions");
  const int32_t partial = length % block_tokens_;
  std::vector<GroupTable> tables(groups_.size());
  for (size_t g = 0; g < groups_.size(); ++g) {
    GroupTable& table = tables[g];
    table.first_held = groups_[g].first_seen(length) / block_tokens_;
    table.blocks.assign(static_cast<size_t>(table.first_held), BlockId{0});
    for (int32_t i = table.first_held; i < blocks_for(length); ++i) {
      table.blocks.push_back(contents_of(parent, g, i));
      if (table.blocks.back() == kNoBlock) return std::nullopt;
    }
  }
  hold_all(tables);  // before any block is taken, so that none of them is given up for it
  std::vector<BlockCopy> copies;
  if (partial != 0) {
    if (std::ranges::any_of(groups_, [&](const CacheGroup& group) { return available_blocks(group) == 0; })) {
      drop_all(tables);
      return std::nullopt;
    }
    for (size_t g = 0; g < groups_.size(); ++g) {
      const BlockId from = tables[g].blocks.back();
      const BlockId to = take_block(groups_[g]);
      tables[g].blocks.back() = to;
      groups_[g].drop(from);
      copies.push_back({.group = static_cast<int32_t>(g), .from = from, .to = to});
      unfilled_tokens_ += block_tokens_ - partial;
    }
  }
  Sequence& child = add(child_id);
  child.salt = parent.salt;
  child.submitted = length;
  child.findable = parent.findable;
  if (parent.findable) child.path.assign(parent.path.begin(), parent.path.begin() + length / block_tokens_);
  child.tables = std::move(tables);
  for (const NodeId node : child.path) tree_.enter(node);
  return copies;
}

void CacheManager::close(SequenceId id) {
  Sequence& sequence = find(id);
  for (const GroupTable& table : sequence.tables) {
    unfilled_tokens_ -= std::ssize(table.blocks) * block_tokens_ - sequence.submitted;
  }
  drop_all(sequence.tables);
  for (auto node = sequence.path.rbegin(); node != sequence.path.rend(); ++node) tree_.leave(*node);
  sequences_.erase(id);
}

std::span<const BlockId> CacheManager::table(SequenceId id, int32_t group) const {
  return find(id).tables[static_cast<size_t>(group)].blocks;
}

bool CacheManager::fits(int32_t tokens, int32_t chunk_tokens) const noexcept {
  return std::ranges::all_of(groups_, [&](const CacheGroup& group) {
    return most_blocks_held(group.window(), block_tokens_, tokens, chunk_tokens) <= group.pool().total();
  });
}

int64_t CacheManager::available_tokens() const noexcept {
  int64_t least = std::numeric_limits<int32_t>::max();
  for (const CacheGroup& group : groups_) least = std::min<int64_t>(least, available_blocks(group));
  return least * block_tokens_;
}

void CacheManager::clear_prefixes() {
  for (CacheGroup& group : groups_) {
    for (int32_t i = 0; i < group.pool().total(); ++i) {
      if (group.node(BlockId{i}) != kNoNode) group.detach(BlockId{i});
    }
  }
  tree_.clear();
  for (auto& [id, sequence] : sequences_) {
    sequence.findable = false;
    sequence.path.clear();
  }
}

bool CacheManager::resize(int32_t index, int32_t num_blocks) {
  CacheGroup& group = groups_[static_cast<size_t>(index)];
  HR_CHECK(num_blocks > 0, "group ", index, " of ", num_blocks, " blocks");
  std::vector<BlockId> cached;
  for (int32_t i = num_blocks; i < group.pool().total(); ++i) {
    if (group.pool().owners(BlockId{i}) == 0) continue;
    if (!is_cached(group, BlockId{i})) return false;
    cached.push_back(BlockId{i});
  }
  for (const BlockId block : cached) {
    // In a full group a node goes after its descendants: the oldest go until this one has gone.
    while (group.pool().owners(block) > 0) {
      if (group.full()) {
        evict_node();
      } else {
        evict_block(group, block);
      }
    }
  }
  group.resize(num_blocks);
  reserve_nodes();
  return true;
}

void CacheManager::reserve_nodes() {
  if (!prefix_caching_) return;
  // One a block, which is all there are of in use; moving a hundred thousand would hold a step back by milliseconds.
  const auto fewer = [](const CacheGroup& a, const CacheGroup& b) { return a.pool().total() < b.pool().total(); };
  tree_.reserve(std::ranges::max_element(groups_, fewer)->pool().total());
}

CacheFigures CacheManager::figures() const noexcept {
  CacheFigures figures{.query_tokens = query_tokens_, .hit_tokens = hit_tokens_, .evicted_blocks = evicted_blocks_};
  for (const CacheGroup& group : groups_) {
    figures.total_blocks += group.pool().total();
    figures.free_blocks += group.pool().free();
    figures.cached_blocks += cached_blocks(group);
  }
  figures.used_blocks = figures.total_blocks - figures.free_blocks - figures.cached_blocks;
  figures.used_tokens = figures.used_blocks * block_tokens_ - unfilled_tokens_;
  return figures;
}

CacheManager::Sequence& CacheManager::add(SequenceId id) {
  const auto [entry, added] = sequences_.try_emplace(id);
  HR_CHECK(added, "sequence ", raw(id), " is there already");
  entry->second.tables.resize(groups_.size());
  return entry->second;
}

const CacheManager::Sequence& CacheManager::find(SequenceId id) const {
  const auto found = sequences_.find(id);
  HR_CHECK(found != sequences_.end(), "no sequence ", raw(id));
  return found->second;
}

CacheManager::Sequence& CacheManager::find(SequenceId id) {
  return const_cast<Sequence&>(std::as_const(*this).find(id));
}

std::vector<NodeId> CacheManager::longest_prefix(std::span<const TokenId> tokens, uint64_t salt) {
  std::vector<NodeId> path;
  if (!prefix_caching_) return path;
  const auto size = static_cast<size_t>(block_tokens_);
  size_t hit = 0;
  std::vector<int32_t> run(groups_.size(), 0);  // nodes at the end of the path that have the group's block
  NodeId node = kNoNode;
  while ((path.size() + 1) * size < tokens.size()) {
    node = tree_.find(node, salt, tokens.subspan(path.size() * size, size));
    if (node == kNoNode) break;
    path.push_back(node);
    const auto length = static_cast<int32_t>(path.size());
    bool seen_all = true;
    for (size_t g = 0; g < groups_.size(); ++g) {
      run[g] = tree_.blocks(node)[g] == kNoBlock ? 0 : run[g] + 1;
      seen_all &= length - run[g] <= groups_[g].first_seen(length * block_tokens_) / block_tokens_;
    }
    if (seen_all) hit = path.size();
  }
  path.resize(hit);
  return path;
}

void CacheManager::make_findable(Sequence& sequence, std::span<const TokenId> tokens) {
  const auto size = static_cast<size_t>(block_tokens_);
  while ((sequence.path.size() + 1) * size <= static_cast<size_t>(sequence.submitted)) {
    const size_t i = sequence.path.size();
    const NodeId parent = i == 0 ? kNoNode : sequence.path.back();
    NodeId node = tree_.find(parent, sequence.salt, tokens.subspan(i * size, size));
    if (node == kNoNode) {
      node = tree_.insert(parent, sequence.salt, tokens.subspan(i * size, size));
    } else {
      tree_.enter(node);
    }
    for (size_t g = 0; g < groups_.size(); ++g) {
      BlockId& known = tree_.blocks(node)[g];
      if (known != kNoBlock) continue;  // another sequence was faster: its copy is findable, this one goes at close
      known = sequence.tables[g].blocks[i];
      groups_[g].attach(known, node);
    }
    sequence.path.push_back(node);
  }
  int64_t most_nodes = 0;
  for (const CacheGroup& group : groups_) most_nodes += kMostNodesPerBlock * group.pool().total();
  while (tree_.size() > most_nodes && tree_.num_unused() > 0) evict_node();
}

void CacheManager::drop_unseen(Sequence& sequence) {
  for (size_t g = 0; g < groups_.size(); ++g) {
    GroupTable& table = sequence.tables[g];
    const int32_t first = groups_[g].first_seen(sequence.submitted) / block_tokens_;
    for (; table.first_held < first; ++table.first_held) {
      BlockId& block = table.blocks[static_cast<size_t>(table.first_held)];
      groups_[g].drop(block);
      block = BlockId{0};
    }
  }
}

BlockId CacheManager::contents_of(const Sequence& sequence, size_t group, int32_t i) {
  const auto index = static_cast<size_t>(i);
  if (i >= sequence.tables[group].first_held) return sequence.tables[group].blocks[index];
  return index < sequence.path.size() ? tree_.blocks(sequence.path[index])[group] : kNoBlock;
}

void CacheManager::hold_all(std::vector<GroupTable>& tables) {
  for (size_t g = 0; g < tables.size(); ++g) {
    for (size_t i = static_cast<size_t>(tables[g].first_held); i < tables[g].blocks.size(); ++i) {
      groups_[g].hold(tables[g].blocks[i]);
    }
  }
}

void CacheManager::drop_all(std::vector<GroupTable>& tables) {
  for (size_t g = 0; g < tables.size(); ++g) {
    // From the end: of equally old ones the last is given up first, as in the tree.
    for (auto i = std::ssize(tables[g].blocks); i-- > tables[g].first_held;) {
      groups_[g].drop(tables[g].blocks[static_cast<size_t>(i)]);
    }
  }
}

int32_t CacheManager::blocks_for(int32_t positions) const noexcept {
  return positions / block_tokens_ + (positions % block_tokens_ != 0 ? 1 : 0);
}

int32_t CacheManager::cached_blocks(const CacheGroup& group) const noexcept {
  return group.full() ? tree_.num_unused() : group.num_cached();
}

int32_t CacheManager::available_blocks(const CacheGroup& group) const noexcept {
  return group.pool().free() + cached_blocks(group);
}

bool CacheManager::is_cached(const CacheGroup& group, BlockId block) const noexcept {
  if (!group.full()) return group.is_cached(block);
  return group.node(block) != kNoNode && tree_.users(group.node(block)) == 0;
}

BlockId CacheManager::take_block(CacheGroup& group) {
  while (group.pool().free() == 0) {
    if (group.full()) {
      evict_node();
    } else {
      evict_block(group, group.oldest_cached());
    }
  }
  return group.lease();
}

void CacheManager::evict_node() {
  const NodeId node = tree_.oldest_unused();
  for (size_t g = 0; g < groups_.size(); ++g) {
    const BlockId block = tree_.blocks(node)[g];
    if (block != kNoBlock) evict_block(groups_[g], block);
  }
  tree_.remove(node);
}

void CacheManager::evict_block(CacheGroup& group, BlockId block) {
  tree_.blocks(group.node(block))[static_cast<size_t>(&group - groups_.data())] = kNoBlock;
  group.detach(block);
  ++evicted_blocks_;
}

}  // namespace headrace
