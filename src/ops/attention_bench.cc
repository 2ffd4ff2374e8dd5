// Attention on one thread. Decoding: one row or a row each of many short sequences, in bytes of keys and values read a
// second, beside a plain sum over as many bytes, which leaves fetching ahead to the processor; each run takes other
// sequences, so that caches are cold.
// Prompts: the last 512 rows of a context, in operations a second (two a multiplication with a key's or value's
// component). Blocks lie in random order. Times are of the thread's processor time, so that other programs disturb
// less.
#include <fmt/format.h>
#include <sys/mman.h>

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
  int32_t head_dim = 64;
  int32_t context = 8192;
  int32_t sequences = 4;
  int32_t rows = 1;  ///< of a step, each of another sequence
};

/// Memory in huge pages, where the system has them, as engines have it.
class Slab {
 public:
  explicit Slab(size_t bytes)
      : bytes_(bytes), data_(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
    if (data_ == MAP_FAILED) throw std::bad_alloc();
    madvise(data_, bytes, MADV_HUGEPAGE);
    std::memset(data_, 0x2a, bytes);  // small numbers in every type
  }
  Slab(const Slab&) = delete;
  Slab& operator=(const Slab&) = delete;
  ~Slab() { munmap(data_, bytes_); }
  [[nodiscard]] const std::byte* data() const { return static_cast<const std::byte*>(data_); }

 private:
  size_t bytes_;
  void* data_;
};

/// Blocks of all sequences, in random order.
std::vector<int32_t> shuffled_blocks(int32_t count) {
  std::vector<int32_t> table(static_cast<size_t>(count));
  std::iota(table.begin(), table.end(), 0);
  std::mt19937 random(1);
  std::shuffle(table.begin(), table.end(), random);
  return table;
}

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
  std::vector<double> giga_per_s;
  void add(double count, double seconds) { giga_per_s.push_back(count / seconds / 1e9); }
  std::string text() {
    std::sort(giga_per_s.begin(), giga_per_s.end());
    return fmt::format("{:6.1f} ({:.1f} to {:.1f})", giga_per_s[giga_per_s.size() / 2], giga_per_s.front(),
                       giga_per_s.back());
  }
};

void print(const char* what, Isa isa, const Setup& s, const std::string& result) {
  fmt::print("{:6} {:6} {:4} {} x {} heads, dim {:3}, context {:5}: {}\n", what, isa_name(isa), dtype_name(s.dtype),
             s.kv_heads, s.group, s.head_dim, s.context, result);
}

void bench_decode(const Setup& s) {
  const KvLayout layout{s.dtype, s.kv_heads, s.head_dim, s.head_dim};
  const int32_t blocks = s.context / kBlockTokens * s.sequences;
  const auto bytes = static_cast<size_t>(blocks * kv_block_bytes(layout));
  const int32_t steps = s.sequences / s.rows;
  const size_t step_bytes = bytes / static_cast<size_t>(steps);
  const Slab slab(bytes);
  const std::vector<int32_t> table = shuffled_blocks(blocks);
  const int32_t heads = s.kv_heads * s.group;
  std::vector<int32_t> begins(static_cast<size_t>(s.sequences));
  for (size_t i = 0; i < begins.size(); ++i) begins[i] = static_cast<int32_t>(i) * (s.context / kBlockTokens);
  const std::vector<int32_t> positions(static_cast<size_t>(s.rows), s.context - 1);
  std::vector<float> q(static_cast<size_t>(s.rows * heads * s.head_dim), 0.01f), out(q.size());
  for (const OpVariant<AttentionFn>& variant : attention_table(s.dtype)) {
    if (variant.isa == Isa::kRef || !machine_has(variant.isa)) continue;
    Rates attention, plain;
    uint64_t sink = 0;  // printed, so that nothing is left out
    for (int run = 0; run < 5 * steps; ++run) {
      const int32_t step = run % steps;
      const AttentionArgs args{
          layout, q.data(), slab.data(), table.data(), begins.data() + step * s.rows, positions.data(), out.data(),
          s.rows, heads,    0,           0.1f};
      double start = thread_seconds();
      variant.fn(args, {0, int64_t{s.rows} * s.kv_heads});
      attention.add(static_cast<double>(step_bytes), thread_seconds() - start);
      sink += static_cast<uint64_t>(out[0] * 1000);
      const int32_t other = (step + steps / 2) % steps;
      start = thread_seconds();
      sink += sum_words(slab.data() + static_cast<size_t>(other) * step_bytes, step_bytes);
      plain.add(static_cast<double>(step_bytes), thread_seconds() - start);
    }
    print("decode", variant.isa, s,
          fmt::format("{} GB/s; plain read {} GB/s  [{:x}]", attention.text(), plain.text(), sink & 0xff));
  }
}

void bench_prompt(const Setup& s) {
  constexpr int32_t kRows = 512;
  const KvLayout layout{s.dtype, s.kv_heads, s.head_dim, s.head_dim};
  const int32_t blocks = s.context / kBlockTokens;
  const Slab slab(static_cast<size_t>(blocks * kv_block_bytes(layout)));
  const std::vector<int32_t> table = shuffled_blocks(blocks);
  const int32_t heads = s.kv_heads * s.group;
  std::vector<int32_t> positions(kRows);
  std::iota(positions.begin(), positions.end(), s.context - kRows);
  const std::vector<int32_t> begins(kRows, 0);
  std::vector<float> q(static_cast<size_t>(kRows * heads * s.head_dim), 0.01f), out(q.size());
  const double seen = static_cast<double>(kRows) * (s.context - kRows / 2);
  for (const OpVariant<AttentionFn>& variant : attention_table(s.dtype)) {
    if (variant.isa == Isa::kRef || !machine_has(variant.isa)) continue;
    Rates rates;
    for (int run = 0; run < 3; ++run) {
      const double start = thread_seconds();
      variant.fn({layout, q.data(), slab.data(), table.data(), begins.data(), positions.data(), out.data(), kRows,
                  heads, 0, 0.1f},
                 {0, int64_t{kRows} * s.kv_heads});
      rates.add(seen * heads * s.head_dim * 4, thread_seconds() - start);
    }
    print("prompt", variant.isa, s, rates.text() + " Gop/s");
  }
}

}  // namespace
}  // namespace headrace

int main() {
  using headrace::kKvDTypes;
  for (const headrace::DType dtype : kKvDTypes) {
    for (const int32_t dim : {64, 128}) headrace::bench_decode({.dtype = dtype, .head_dim = dim});
    headrace::bench_decode({.dtype = dtype, .context = 32768, .sequences = 2});
    headrace::bench_decode({.dtype = dtype, .kv_heads = 3, .group = 3});
    headrace::bench_decode({.dtype = dtype, .kv_heads = 3, .group = 3, .context = 416, .sequences = 512, .rows = 32});
    headrace::bench_decode({.dtype = dtype, .kv_heads = 8, .group = 8, .head_dim = 128});
    headrace::bench_decode({.dtype = dtype, .kv_heads = 1, .context = 512, .sequences = 1});  // in the L2 cache
  }
  for (const headrace::DType dtype : kKvDTypes) {
    for (const int32_t context : {512, 2048}) {
      headrace::bench_prompt({.dtype = dtype, .kv_heads = 3, .group = 3, .context = context});
      headrace::bench_prompt({.dtype = dtype, .kv_heads = 2, .context = context});
    }
    headrace::bench_prompt({.dtype = dtype, .kv_heads = 2, .head_dim = 128, .context = 2048});
  }
}
