#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/ids.h"
#include "kv/index_list.h"

namespace headrace {

/// A node of the prefix tree; its number is used again when the node is gone.
enum class NodeId : int32_t {};
inline constexpr NodeId kNoNode{-1};
/// In the place of a block that a node does not have.
inline constexpr BlockId kNoBlock{-1};

/// Hash of a block's tokens that follow a prefix, which `seed` stands for.
using TokenHash = uint64_t (*)(std::span<const TokenId> tokens, uint64_t seed) noexcept;
[[nodiscard]] uint64_t hash_tokens(std::span<const TokenId> tokens, uint64_t seed) noexcept;

/// The prefixes whose blocks may be found: a radix tree over whole blocks of tokens, one node a block, a tree for each
/// salt. It counts the users of each node and knows which unused one is the oldest; the blocks that it keeps for the
/// nodes belong to its caller. Threading: the scheduler's thread only.
/// Invariants: a used node's ancestors are used. Of the unused nodes, descendants are older than their ancestors, so
/// the oldest is a leaf.
class PrefixTree {
 public:
  /// `hash` may be any function: tokens are compared.
  PrefixTree(int32_t block_tokens, int32_t num_groups, TokenHash hash = hash_tokens);
  /// Room for `nodes`, so that none of the first so many inserts has to move all that there is.
  void reserve(int32_t nodes);

  /// The node of `tokens`, one block of them, after `parent`, or, where that is kNoNode, at the root of `salt`. kNoNode
  /// where there is none.
  [[nodiscard]] NodeId find(NodeId parent, uint64_t salt, std::span<const TokenId> tokens) const;
  /// Adds that node, which must not be there, with no blocks and one user. The parent must be in use.
  NodeId insert(NodeId parent, uint64_t salt, std::span<const TokenId> tokens);
  /// One more user. A sequence uses all nodes of its prefix.
  void enter(NodeId node) noexcept;
  /// One user less. Who leaves a prefix begins at its end.
  void leave(NodeId node) noexcept;
  /// The unused node that was left first: a leaf. There must be one.
  [[nodiscard]] NodeId oldest_unused() const noexcept { return NodeId{unused_.front()}; }
  /// Removes an unused leaf.
  void remove(NodeId node);
  void clear();

  /// The node's block in each group; kNoBlock at first.
  [[nodiscard]] std::span<BlockId> blocks(NodeId node) noexcept;
  [[nodiscard]] int32_t users(NodeId node) const noexcept { return at(node).users; }
  [[nodiscard]] int32_t size() const noexcept { return static_cast<int32_t>(nodes_.size() - free_.size()); }
  [[nodiscard]] int32_t num_unused() const noexcept { return unused_.size(); }

 private:
  struct Node {
    NodeId parent = kNoNode;
    int32_t users = 0;
    int32_t children = 0;
    uint64_t salt = 0;
    uint64_t hash = 0;
  };

  [[nodiscard]] Node& at(NodeId node) noexcept { return nodes_[static_cast<size_t>(raw(node))]; }
  [[nodiscard]] const Node& at(NodeId node) const noexcept { return nodes_[static_cast<size_t>(raw(node))]; }
  [[nodiscard]] std::span<const TokenId> tokens(NodeId node) const noexcept;
  [[nodiscard]] uint64_t key_of(NodeId parent, uint64_t salt, std::span<const TokenId> tokens) const noexcept;

  int32_t block_tokens_;
  int32_t num_groups_;
  TokenHash hash_;
  int32_t reserved_ = 0;
  std::vector<Node> nodes_;
  std::vector<TokenId> tokens_;  // of node i: [i * block_tokens_, (i + 1) * block_tokens_)
  std::vector<BlockId> blocks_;  // of node i: [i * num_groups_, (i + 1) * num_groups_)
  std::vector<NodeId> free_;     // numbers to use again
  std::unordered_multimap<uint64_t, NodeId> by_hash_;
  IndexList unused_;  // the oldest first
};

}  // namespace headrace
