// Speed of packing and of the products: matmul_bench [ISA] [--numerics NAME] [-t THREADS] [-n NEURONS] [-k INPUTS]
// [-r ROWS,...] [TYPE...]. Weights are rotated through a working set larger than the caches, on huge pages as the
// engine's are, for few rows. Prints medians of repeated runs, and the spread between the quartiles for many rows.
#include <sys/mman.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "base/compute_pool.h"
#include "base/isa.h"
#include "ops/matmul.h"
#include "ops/recipe.h"

namespace headrace {
namespace {

constexpr int64_t kWorkingSet = 600 << 20;  // bytes, more than the last-level cache's share of any machine at hand
constexpr int64_t kManyRows = 128;          // from here on arithmetic counts, and a few matrices are enough
constexpr int64_t kManyRowsMatrices = 4;
constexpr int kRuns = 7;

struct Options {
  std::string isa;
  Numerics numerics = Numerics::kPortable;
  int threads = 1;
  int64_t n = 2048, k = 2048;
  std::vector<int64_t> rows{1, 2, 4, 8, 16, 32, 64, 512};
  std::vector<DType> types;
};

/// Zeroed memory on huge pages where the system gives them.
class Buffer {
 public:
  explicit Buffer(int64_t size) : size_(static_cast<size_t>((size + kPage - 1) / kPage * kPage + kPage)) {
    void* const memory = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
      std::fprintf(stderr, "matmul_bench: the system has no %zu bytes to give\n", size_);
      std::exit(1);
    }
    (void)madvise(memory, size_, MADV_HUGEPAGE);
    std::memset(memory, 0, size_);
    data_ = static_cast<std::byte*>(memory);
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() { munmap(data_, size_); }
  [[nodiscard]] std::byte* data() const noexcept { return data_; }

 private:
  static constexpr int64_t kPage = 2 << 20;
  size_t size_;
  std::byte* data_;
};

struct Times {
  double median, low, high;  // seconds; quartiles
};
/// One thread: the time it has run, which unlike the wall clock leaves out the slices that other processes took.
double seconds(int threads) {
  timespec t{};
  clock_gettime(threads == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}
template <class Body>
Times measure(int threads, Body body) {
  std::vector<double> times;
  body();
  for (int run = 0; run < kRuns; ++run) {
    const double start = seconds(threads);
    body();
    times.push_back(seconds(threads) - start);
  }
  std::sort(times.begin(), times.end());
  return {times[kRuns / 2], times[kRuns / 4], times[kRuns - 1 - kRuns / 4]};
}
/// body(begin, end) over ranges of [0, items) of at least `grain` items, on all threads of the pool.
template <class Body>
void split(ComputePool& pool, int64_t items, int64_t grain, const Body& body) {
  pool.parallel_for(
      items, grain,
      [](void* context, int64_t begin, int64_t end) noexcept { (*static_cast<const Body*>(context))(begin, end); },
      const_cast<Body*>(&body));
}

/// Eight streams for each thread, fetched ahead: the most that one core of the machines at hand reads.
void bench_read_limit(ComputePool& pool, const Buffer& memory) {
  constexpr int64_t kPart = 8 << 20, kStream = kPart / 8, kAhead = 1024;
  std::atomic<uint64_t> sum = 0;
  const auto read = [&](int64_t begin, int64_t end) {
    uint64_t sums[8]{};
    for (int64_t part = begin; part < end; ++part) {
      const std::byte* const first = memory.data() + part * kPart;
      for (int64_t i = 0; i < kStream; i += 64) {
        for (int64_t s = 0; s < 8; ++s) {
          const std::byte* const at = first + s * kStream + i;
          __builtin_prefetch(at + kAhead);
          sums[s] += *reinterpret_cast<const uint64_t*>(at);
        }
      }
    }
    for (const uint64_t s : sums) sum += s;
  };
  const Times t = measure(pool.threads(), [&] { split(pool, kWorkingSet / kPart, 1, read); });
  std::printf("memory read %.1f GB/s%s\n", static_cast<double>(kWorkingSet) / t.median * 1e-9, sum == 1 ? "!" : "");
}

void bench_type(DType dtype, Isa isa, const Options& o, ComputePool& pool, const Buffer& memory) {
  const BlockFormat& format = *find_format(dtype);
  const MatmulRecipe& recipe = *matmul_recipe(o.numerics, dtype);
  const int64_t file_bytes = tensor_bytes(dtype, {o.n, o.k});
  std::vector<std::byte> file(static_cast<size_t>(file_bytes));
  std::vector<float> row(static_cast<size_t>(o.k));
  for (int64_t i = 0; i < o.k; ++i) row[static_cast<size_t>(i)] = static_cast<float>(i * 7919 % 1999 - 999) * 1e-3f;
  for (int64_t j = 0; j < o.n && format.encode != nullptr; ++j) {
    format.encode(row.data(), o.k, file.data() + j * (file_bytes / o.n));
  }
  const int64_t bytes = packed_bytes(dtype, recipe.layout, o.n, o.k);
  const Times pack = measure(1, [&] { pack_weights(dtype, recipe.layout, file, o.n, o.k, 0, o.n, memory.data()); });
  std::printf("%-8s pack %6.0f MB/s |", std::string(dtype_name(dtype)).c_str(),
              static_cast<double>(file_bytes) / pack.median * 1e-6);
  const int64_t copies = kWorkingSet / bytes;
  for (int64_t c = 1; c < copies; ++c)
    std::memcpy(memory.data() + c * bytes, memory.data(), static_cast<size_t>(bytes));

  const MatmulFn fn = matmul_table(dtype, recipe.layout)->best(isa).fn;
  for (const int64_t rows : o.rows) {
    const Buffer x(act_row_bytes(recipe.act, o.k) * rows), y(rows * o.n * 4);
    const ActView act{recipe.act, x.data(), rows, o.k};
    std::vector<float> input(static_cast<size_t>(rows * o.k));
    for (size_t i = 0; i < input.size(); ++i) input[i] = row[i * 31 % row.size()];
    // Outliers as trained models have them: one in 1024 values.
    for (size_t i = 5; i < input.size(); i += 1024) input[i] = 40;
    if (recipe.act == ActForm::kF32) {
      std::memcpy(x.data(), input.data(), input.size() * 4);
    } else {
      quantize_table(recipe.act)->best(isa).fn({input.data(), act}, {0, rows});
    }
    const int64_t used = rows < kManyRows ? copies : std::min(copies, kManyRowsMatrices);
    const Times t = measure(o.threads, [&] {
      for (int64_t c = 0; c < used; ++c) {
        const WeightView w{dtype, recipe.layout, o.n, o.k, memory.data() + c * bytes};
        const MatmulArgs args{.x = act, .w = w, .y = reinterpret_cast<float*>(y.data()), .y_stride = o.n};
        split(pool, (o.n + kNeuronGroup - 1) / kNeuronGroup, 1, [&](int64_t begin, int64_t end) {
          fn(args, {begin, end});
        });
      }
    });
    const auto ops = static_cast<double>(2 * rows * o.n * o.k * used);
    if (rows < kManyRows) {
      std::printf(" %ld: %.1f", static_cast<long>(rows), static_cast<double>(used * bytes) / t.median * 1e-9);
    } else {
      std::printf(" | %ld: %.3f (%.3f-%.3f) Top/s", static_cast<long>(rows), ops / t.median * 1e-12,
                  ops / t.high * 1e-12, ops / t.low * 1e-12);
    }
    std::fflush(stdout);
  }
  std::printf("\n");
}

/// Unknown words are an error, as a misspelt type would measure nothing.
bool parse(int argc, char** argv, Options& o) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (i == 1 && parse_isa(word)) {
      o.isa = word;
    } else if (const std::optional<DType> dtype = dtype_from_name(word)) {
      o.types.push_back(*dtype);
    } else if (i + 1 == argc) {
      return false;
    } else if (word == "--numerics") {
      const std::optional<Numerics> numerics = parse_numerics(argv[++i]);
      if (!numerics) return false;
      o.numerics = *numerics;
    } else if (word == "-t") {
      o.threads = std::max(std::atoi(argv[++i]), 1);
    } else if (word == "-n") {
      o.n = std::max(std::atol(argv[++i]), 1L);
    } else if (word == "-k") {
      o.k = std::max(std::atol(argv[++i]), 1L);
    } else if (word == "-r") {
      o.rows.clear();
      for (const char* at = argv[++i]; *at != '\0'; at += std::strcspn(at, ",") + (std::strchr(at, ',') != nullptr)) {
        o.rows.push_back(std::max(std::atol(at), 1L));
      }
    } else {
      return false;
    }
  }
  return true;
}

}  // namespace
}  // namespace headrace

int main(int argc, char** argv) {
  using namespace headrace;
  Options o;
  if (!parse(argc, argv, o)) {
    std::fprintf(stderr,
                 "usage: matmul_bench [ISA] [--numerics NAME] [-t THREADS] [-n NEURONS] [-k INPUTS] [-r ROWS,...] "
                 "[TYPE...]\n");
    return 2;
  }
  const Isa isa = choose_isa(o.isa);
  std::printf("%s, %s, k %ld, n %ld, threads %d, %ld MiB of weights\n", cpu_model_name().c_str(),
              std::string(isa_name(isa)).c_str(), static_cast<long>(o.k), static_cast<long>(o.n), o.threads,
              static_cast<long>(kWorkingSet >> 20));
  ComputePool pool(o.threads);
  const Buffer memory(kWorkingSet);
  bench_read_limit(pool, memory);
  if (o.types.empty()) {
    for (const BlockFormat* format : all_formats()) o.types.push_back(format->dtype);
  }
  for (const DType dtype : o.types) bench_type(dtype, isa, o, pool, memory);
}
