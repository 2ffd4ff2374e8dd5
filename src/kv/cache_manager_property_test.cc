// Random histories of the cache manager against a model that knows what each block of each group contains.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "base/property_test.h"
#include "kv/cache_manager.h"

namespace headrace {
namespace {

constexpr int32_t kBlock = 4;  // tokens: short sequences make many blocks

/// Stands for the key and value of one position: they depend on all tokens up to it, and on the salt.
using Content = uint64_t;
constexpr Content kGarbage = 0;

Content after(Content prefix, TokenId token) {
  return (prefix ^ static_cast<Content>(token + 1)) * 0x9e3779b97f4a7c15u + 0x632be59bd9b4e019u;
}

struct ModelSequence {
  std::vector<TokenId> tokens;
  std::vector<Content> contents;  // of each token
  int32_t computed = 0;
};

class History {
 public:
  explicit History(CacheConfig config) : config_(std::move(config)), cache_(config_) {
    for (const CacheGroupConfig& group : config_.groups) {
      blocks_.emplace_back(static_cast<size_t>(group.num_blocks), std::vector<Content>(kBlock, kGarbage));
    }
  }

  void step() {
    const int action = *rc::gen::inRange(0, 100);
    if (sequences_.empty() || action < 20) {
      open();
    } else if (action < 60) {
      compute(pick());
    } else if (action < 70) {
      fork(pick());
    } else if (action < 92) {
      close(pick());
    } else if (action < 95) {
      cache_.clear_prefixes();
    } else {
      resize();
    }
    check();
  }

  /// Everyone leaves: all blocks are free or cached, and after clear_prefixes() free. What fits() promised is kept.
  void finish() {
    while (!sequences_.empty()) close(sequences_.begin()->first);
    check();
    RC_ASSERT(cache_.figures().used_blocks == 0);
    RC_ASSERT(cache_.figures().used_tokens == 0);
    RC_ASSERT(cache_.available_tokens() == least_blocks() * kBlock);
    cache_.clear_prefixes();
    RC_ASSERT(cache_.figures().free_blocks == cache_.figures().total_blocks);
    const int32_t tokens = *rc::gen::inRange(1, 120);
    const int32_t chunk = *rc::gen::inRange(1, 20);
    if (!cache_.fits(tokens, chunk)) return;
    const SequenceId id{next_++};
    std::vector<TokenId> all(static_cast<size_t>(tokens), 0);
    cache_.open(id, all, 0);
    for (int32_t end = 0; end < tokens;) {
      end = std::min(tokens, end + chunk);
      RC_ASSERT(cache_.reserve(id, end));
      cache_.submitted(id, all, end);
    }
  }

 private:
  /// The next tokens: from few values, so that prefixes are often equal.
  static void add_tokens(ModelSequence& sequence, uint64_t salt, int32_t n) {
    for (int32_t i = 0; i < n; ++i) {
      const TokenId token = *rc::gen::inRange(0, 16) == 0 ? 1 : 0;
      const Content before = sequence.contents.empty() ? salt + 1 : sequence.contents.back();
      sequence.tokens.push_back(token);
      sequence.contents.push_back(after(before, token));
    }
  }
  SequenceId pick() { return std::next(sequences_.begin(), *rc::gen::inRange<long>(0, std::ssize(sequences_)))->first; }
  [[nodiscard]] size_t num_groups() const { return blocks_.size(); }
  [[nodiscard]] int32_t window(size_t g) const { return config_.groups[g].window; }
  [[nodiscard]] int64_t least_blocks() const {
    return std::ranges::min(config_.groups, {}, &CacheGroupConfig::num_blocks).num_blocks;
  }
  [[nodiscard]] std::span<const BlockId> table(SequenceId id, size_t g) const {
    return cache_.table(id, static_cast<int32_t>(g));
  }
  std::vector<Content>& block(size_t g, BlockId id) { return blocks_[g].at(static_cast<size_t>(raw(id))); }
  /// First block that later positions see.
  [[nodiscard]] int32_t first_block(size_t g, int32_t computed) const {
    return window(g) == 0 ? 0 : std::max(0, computed - window(g) + 1) / kBlock;
  }

  void open() {
    const SequenceId id{next_++};
    const uint64_t salt = *rc::gen::inRange<uint64_t>(0, 2);
    ModelSequence sequence;
    add_tokens(sequence, salt, *rc::gen::inRange(1, 60));
    sequence.computed = cache_.open(id, sequence.tokens, salt);
    RC_ASSERT(sequence.computed % kBlock == 0);
    RC_ASSERT(sequence.computed < std::ssize(sequence.tokens));
    RC_ASSERT(config_.prefix_caching || sequence.computed == 0);
    salts_[id] = salt;
    sequences_[id] = std::move(sequence);  // check() finds out whether the hit holds what it should
  }

  void compute(SequenceId id) {
    ModelSequence& sequence = sequences_[id];
    const auto length = static_cast<int32_t>(sequence.tokens.size());
    if (sequence.computed == length) {
      add_tokens(sequence, salts_[id], *rc::gen::inRange(1, 6));
      return;
    }
    const int32_t end = *rc::gen::inRange(sequence.computed, length) + 1;
    const int32_t expected = *rc::gen::inRange(0, 2 * length);
    std::vector<size_t> before;
    for (size_t g = 0; g < num_groups(); ++g) before.push_back(table(id, g).size());
    const int64_t available = cache_.available_tokens();
    const bool done = cache_.reserve(id, end, expected);
    const auto needed = [&](size_t g) {
      return ((window(g) == 0 ? std::max(end, expected) : end) + kBlock - 1) / kBlock;
    };
    if (!done) {
      // A group is short, by no more than the shortest one says; nothing has changed.
      bool short_of = false;
      for (size_t g = 0; g < num_groups(); ++g) {
        RC_ASSERT(table(id, g).size() == before[g]);
        short_of |= (needed(g) - static_cast<int32_t>(before[g])) * kBlock > available;
      }
      RC_ASSERT(short_of);
      RC_ASSERT(cache_.available_tokens() == available);
      return;
    }
    for (size_t g = 0; g < num_groups(); ++g) {
      const std::span<const BlockId> now = table(id, g);
      RC_ASSERT(now.size() == std::max(before[g], static_cast<size_t>(needed(g))));
      for (size_t i = before[g]; i < now.size(); ++i) std::ranges::fill(block(g, now[i]), kGarbage);
      for (int32_t pos = sequence.computed; pos < end; ++pos) {
        block(g, now[static_cast<size_t>(pos / kBlock)])[static_cast<size_t>(pos % kBlock)] =
            sequence.contents[static_cast<size_t>(pos)];
      }
    }
    sequence.computed = end;
    cache_.submitted(id, sequence.tokens, end);
  }

  void fork(SequenceId parent) {
    const SequenceId id{next_++};
    const ModelSequence& from = sequences_[parent];
    const int32_t length = *rc::gen::arbitrary<bool>() ? from.computed : *rc::gen::inRange(0, from.computed + 1);
    const int64_t available = cache_.available_tokens();
    const CacheFigures before = cache_.figures();
    const auto copies = cache_.fork(parent, id, length);
    if (!copies) {
      RC_ASSERT(cache_.figures().used_blocks == before.used_blocks);
      RC_ASSERT(length < from.computed || available == 0);
      return;
    }
    for (const BlockCopy& copy : *copies) {
      const auto g = static_cast<size_t>(copy.group);
      block(g, copy.to) = block(g, copy.from);
    }
    ModelSequence child = from;
    child.computed = length;
    child.tokens.resize(static_cast<size_t>(length));
    child.contents.resize(static_cast<size_t>(length));
    salts_[id] = salts_[parent];
    add_tokens(child, salts_[id], 1 + *rc::gen::inRange(0, 6));
    sequences_[id] = std::move(child);
  }

  void close(SequenceId id) {
    cache_.close(id);
    sequences_.erase(id);
  }

  void resize() {
    const auto g = *rc::gen::inRange<size_t>(0, num_groups());
    const int32_t to = *rc::gen::inRange(1, 40);
    std::set<int32_t> used;
    for (const auto& [id, sequence] : sequences_) {
      const std::span<const BlockId> blocks = table(id, g);
      for (auto i = static_cast<size_t>(first_block(g, sequence.computed)); i < blocks.size(); ++i) {
        used.insert(raw(blocks[i]));
      }
    }
    const bool done = cache_.resize(static_cast<int32_t>(g), to);
    if (!used.empty() && *used.rbegin() >= to) RC_ASSERT(!done);
    if (sequences_.empty()) RC_ASSERT(done);
    if (!done) return;
    config_.groups[g].num_blocks = to;
    blocks_[g].resize(static_cast<size_t>(to), std::vector<Content>(kBlock, kGarbage));
  }

  void check() {
    int64_t total = 0, held = 0, prefixes = 0, unfilled = 0;
    for (size_t g = 0; g < num_groups(); ++g) {
      std::map<BlockId, int32_t> holders;
      std::set<BlockId> written_later;  // blocks with a place that is not computed yet
      std::set<Content> whole;
      for (const auto& [id, sequence] : sequences_) {
        const std::span<const BlockId> blocks = table(id, g);
        unfilled += std::ssize(blocks) * kBlock - sequence.computed;
        for (const BlockId block : blocks) RC_ASSERT(raw(block) >= 0 && raw(block) < config_.groups[g].num_blocks);
        const int32_t first = first_block(g, sequence.computed);
        for (auto i = static_cast<size_t>(first); i < blocks.size(); ++i) {
          ++holders[blocks[i]];
          if ((static_cast<int32_t>(i) + 1) * kBlock > sequence.computed) written_later.insert(blocks[i]);
        }
        // Nobody has written over what this sequence still reads: neither a hit, a fork nor anything since.
        const int32_t seen = window(g) == 0 ? 0 : std::max(0, sequence.computed - window(g) + 1);
        for (int32_t pos = seen; pos < sequence.computed; ++pos) {
          RC_ASSERT(block(g, blocks[static_cast<size_t>(pos / kBlock)])[static_cast<size_t>(pos % kBlock)] ==
                    sequence.contents[static_cast<size_t>(pos)]);
        }
        for (int32_t pos = kBlock - 1; pos < sequence.computed; pos += kBlock) {
          whole.insert(sequence.contents[static_cast<size_t>(pos)]);
        }
      }
      for (const BlockId block : written_later) RC_ASSERT(holders[block] == 1);
      total += config_.groups[g].num_blocks;
      held += std::ssize(holders);
      if (window(g) == 0) prefixes += std::ssize(whole);
    }
    const CacheFigures figures = cache_.figures();
    RC_ASSERT(figures.total_blocks == total);
    RC_ASSERT(figures.free_blocks >= 0 && figures.cached_blocks >= 0);
    RC_ASSERT(figures.free_blocks + figures.used_blocks + figures.cached_blocks == total);
    // Besides what sequences hold, full groups keep at most one more block for each of their prefixes: the copy of
    // another sequence that was faster.
    RC_ASSERT(figures.used_blocks >= held);
    RC_ASSERT(figures.used_blocks <= held + prefixes);
    RC_ASSERT(figures.used_tokens == figures.used_blocks * kBlock - unfilled);
    if (!config_.prefix_caching) RC_ASSERT(figures.used_blocks == held && figures.cached_blocks == 0);
  }

  CacheConfig config_;
  CacheManager cache_;
  std::vector<std::vector<std::vector<Content>>> blocks_;  // contents by group, block, place
  std::map<SequenceId, ModelSequence> sequences_;
  std::map<SequenceId, uint64_t> salts_;
  uint64_t next_ = 1;
};

TEST(CacheManagerProperty, NoBlockLeaksOrIsWrittenWhileSharedAndHitsHoldTheirTokens) {
  EXPECT_TRUE(holds_for_histories([] {
    CacheConfig config{.groups = {}, .block_tokens = kBlock, .prefix_caching = *rc::gen::inRange(0, 8) != 0};
    for (int32_t n = *rc::gen::inRange(1, 4); n > 0; --n) {
      config.groups.push_back({.num_blocks = *rc::gen::inRange(1, 40),
                               .window = *rc::gen::arbitrary<bool>() ? 0 : *rc::gen::inRange(1, 20)});
    }
    History history(std::move(config));
    for (int32_t n = *rc::gen::inRange(1, 150); n > 0; --n) history.step();
    history.finish();
  }));
}

}  // namespace
}  // namespace headrace
