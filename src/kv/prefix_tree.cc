#include "kv/prefix_tree.h"

#include <xxhash.h>

#include <algorithm>

namespace headrace {

uint64_t hash_tokens(std::span<const TokenId> tokens, uint64_t seed) noexcept {
  return XXH3_64bits_withSeed(tokens.data(), tokens.size_bytes(), seed);
}

PrefixTree::PrefixTree(int32_t block_tokens, int32_t num_groups, TokenHash hash)
    : block_tokens_(block_tokens), num_groups_(num_groups), hash_(hash) {}

void PrefixTree::reserve(int32_t nodes) {
  const auto count = static_cast<size_t>(nodes);
  reserved_ = nodes;
  nodes_.reserve(count);
  tokens_.reserve(count * static_cast<size_t>(block_tokens_));
  blocks_.reserve(count * static_cast<size_t>(num_groups_));
  unused_.reserve(nodes);
  by_hash_.reserve(count);
}

std::span<const TokenId> PrefixTree::tokens(NodeId node) const noexcept {
  const auto size = static_cast<size_t>(block_tokens_);
  return std::span(tokens_).subspan(static_cast<size_t>(raw(node)) * size, size);
}

std::span<BlockId> PrefixTree::blocks(NodeId node) noexcept {
  const auto size = static_cast<size_t>(num_groups_);
  return std::span(blocks_).subspan(static_cast<size_t>(raw(node)) * size, size);
}

uint64_t PrefixTree::key_of(NodeId parent, uint64_t salt, std::span<const TokenId> tokens) const noexcept {
  HR_CHECK(std::ssize(tokens) == block_tokens_, tokens.size(), " tokens in a block of ", block_tokens_);
  // A node keeps its number while it has children, so the number stands for the whole prefix.
  return hash_(tokens, parent == kNoNode ? salt : static_cast<uint64_t>(raw(parent)));
}

NodeId PrefixTree::find(NodeId parent, uint64_t salt, std::span<const TokenId> block) const {
  const auto [begin, end] = by_hash_.equal_range(key_of(parent, salt, block));
  for (auto it = begin; it != end; ++it) {
    const Node& node = at(it->second);
    if (node.parent == parent && node.salt == salt && std::ranges::equal(tokens(it->second), block)) return it->second;
  }
  return kNoNode;
}

NodeId PrefixTree::insert(NodeId parent, uint64_t salt, std::span<const TokenId> block) {
  const uint64_t key = key_of(parent, salt, block);
  if (free_.empty()) {
    free_.push_back(NodeId{static_cast<int32_t>(nodes_.size())});
    nodes_.emplace_back();
    tokens_.resize(tokens_.size() + static_cast<size_t>(block_tokens_));
    blocks_.resize(blocks_.size() + static_cast<size_t>(num_groups_));
    unused_.resize(static_cast<int32_t>(nodes_.size()));
  }
  const NodeId node = free_.back();
  free_.pop_back();
  at(node) = {.parent = parent, .users = 1, .children = 0, .salt = salt, .hash = key};
  std::ranges::copy(block, tokens_.begin() + std::ptrdiff_t{raw(node)} * block_tokens_);
  std::ranges::fill(blocks(node), kNoBlock);
  by_hash_.emplace(key, node);
  if (parent != kNoNode) {
    HR_CHECK(at(parent).users > 0, "node ", raw(parent), " gets a child and is not in use");
    ++at(parent).children;
  }
  return node;
}

void PrefixTree::enter(NodeId node) noexcept {
  if (at(node).users++ == 0) unused_.remove(raw(node));
}

void PrefixTree::leave(NodeId node) noexcept {
  HR_CHECK(at(node).users > 0, "node ", raw(node), " is not in use");
  if (--at(node).users == 0) unused_.push_back(raw(node));
}

void PrefixTree::remove(NodeId node) {
  const Node& gone = at(node);
  HR_CHECK(gone.users == 0 && gone.children == 0, "node ", raw(node), " has ", gone.users, " users and ", gone.children,
           " children");
  unused_.remove(raw(node));
  if (gone.parent != kNoNode) --at(gone.parent).children;
  const auto [begin, end] = by_hash_.equal_range(gone.hash);
  by_hash_.erase(std::find_if(begin, end, [&](const auto& entry) { return entry.second == node; }));
  free_.push_back(node);
}

void PrefixTree::clear() {
  const int32_t nodes = reserved_;
  *this = PrefixTree(block_tokens_, num_groups_, hash_);
  reserve(nodes);
}

}  // namespace headrace
