// Attention of one decoding row on one thread, in bytes of keys and values read a second, beside a plain sum over as
// many bytes, which leaves fetching ahead to the processor. Each run takes another sequence, so that caches are cold;
// blocks lie in random order. Times are of the thread's processor time, so that other programs disturb less.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <ctime>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "ops/attention.h"

namespace headrace {
namespace {

struct Setup {
  DType dtype = DType::kF16;
  int32_t kv_heads = 8;
  int32_t group = 4;
  int32_t head_dim = 128;
  int32_t context = 8192;
  int32_t sequences = 4;
};

struct AlignedDelete {
  void operator()(std::byte* p) const noexcept { ::operator delete (p, std::align_val_t{64}); }
};

double thread_seconds() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

uint64_t sum_words(const std::byte* data, size_t bytes) {
  uint64_t sums[8] = {};
  for (size_t i = 0; i < bytes; i += sizeof(sums)) {
    uint64_t words[8];
    std::memcpy(words, data + i, sizeof(words));
    for (int j = 0; j < 8; ++j) sums[j] += words[j];
  }
  uint64_t sum = 0;
  for (uint64_t part : sums) sum += part;
  return sum;
}

struct Rates {
  std::vector<double> gb_per_s;
  void add(size_t bytes, double seconds) { gb_per_s.push_back(static_cast<double>(bytes) / seconds / 1e9); }
  std::string text() {
    std::sort(gb_per_s.begin(), gb_per_s.end());
    return fmt::format("{:5.1f} ({:.1f} to {:.1f})", gb_per_s[gb_per_s.size() / 2], gb_per_s.front(), gb_per_s.back());
  }
};

void bench(const Setup& s) {
  const KvLayout layout{s.dtype, s.kv_heads, s.head_dim, s.head_dim};
  const int32_t blocks = s.context / kBlockTokens * s.sequences;
  const auto bytes = static_cast<size_t>(blocks * kv_block_bytes(layout));
  const std::unique_ptr<std::byte[], AlignedDelete> slab(
      static_cast<std::byte*>(::operator new (bytes, std::align_val_t{64})));
  std::memset(slab.get(), 0x2a, bytes);  // small numbers in f16 and in f32
  std::vector<int32_t> table(static_cast<size_t>(blocks));
  std::iota(table.begin(), table.end(), 0);
  std::mt19937 random(1);
  std::shuffle(table.begin(), table.end(), random);
  const int32_t heads = s.kv_heads * s.group;
  std::vector<float> q(static_cast<size_t>(heads * s.head_dim), 0.01f), out(q.size());
  const int32_t pos = s.context - 1;

  for (const OpVariant<AttentionFn>& variant : attention_table(s.dtype)) {
    if (variant.isa == Isa::kRef || !machine_has(variant.isa)) continue;
    Rates attention, plain;
    const size_t sequence_bytes = bytes / static_cast<size_t>(s.sequences);
    uint64_t sink = 0;  // printed, so that nothing is left out
    for (int run = 0; run < 6 * s.sequences; ++run) {
      const int32_t sequence = run % s.sequences;
      const int32_t begin = sequence * (s.context / kBlockTokens);
      const AttentionArgs args{layout, q.data(), slab.get(), table.data(), &begin, &pos, out.data(), 1, heads, 0, 0.1f};
      double start = thread_seconds();
      variant.fn(args, {0, s.kv_heads});
      attention.add(sequence_bytes, thread_seconds() - start);
      sink += static_cast<uint64_t>(out[0] * 1000);
      const int32_t other = (sequence + s.sequences / 2) % s.sequences;
      start = thread_seconds();
      sink += sum_words(slab.get() + static_cast<size_t>(other) * sequence_bytes, sequence_bytes);
      plain.add(sequence_bytes, thread_seconds() - start);
    }
    fmt::print("{:6} {} {} x {} heads, dim {:3}, context {}: {} GB/s; plain read {} GB/s  [{:x}]\n",
               isa_name(variant.isa), dtype_name(s.dtype), s.kv_heads, s.group, s.head_dim, s.context, attention.text(),
               plain.text(), sink & 0xff);
  }
}

}  // namespace
}  // namespace headrace

int main() {
  using headrace::DType;
  for (DType dtype : {DType::kF16, DType::kF32}) {
    for (int32_t group : {1, 4, 8}) {
      for (int32_t dim : {64, 128}) headrace::bench({.dtype = dtype, .group = group, .head_dim = dim});
    }
  }
  headrace::bench({.kv_heads = 1, .group = 4, .head_dim = 128, .context = 512, .sequences = 1});  // in the L2 cache
}
