// Speed of packing and of the products: matmul_bench [ISA] [TYPE...]. One thread, weights rotated through a working set
// larger than the caches for few rows. Prints medians of repeated runs and the spread between the quartiles.
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>
#include <new>
#include <vector>

#include "base/isa.h"
#include "ops/matmul.h"
#include "ops/recipe.h"

namespace headrace {
namespace {

constexpr int64_t kK = 2048, kN = 2048;
constexpr int64_t kWorkingSet = 600 << 20;  // bytes, more than the last-level cache of any machine at hand
constexpr int kRuns = 7;

class Buffer {
 public:
  explicit Buffer(int64_t size) : data_(static_cast<std::byte*>(::operator new(static_cast<size_t>(size), kAlign))) {
    std::memset(data_, 0, static_cast<size_t>(size));
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() { ::operator delete(data_, kAlign); }
  [[nodiscard]] std::byte* data() const noexcept { return data_; }

 private:
  static constexpr std::align_val_t kAlign{64};
  std::byte* data_;
};

struct Times {
  double median, low, high;  // seconds; quartiles
};
/// Time this thread has run: unlike the wall clock it leaves out the slices that other processes took.
double thread_seconds() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}
template <class Body>
Times measure(Body body) {
  std::vector<double> seconds;
  body();
  for (int run = 0; run < kRuns; ++run) {
    const double start = thread_seconds();
    body();
    seconds.push_back(thread_seconds() - start);
  }
  std::sort(seconds.begin(), seconds.end());
  return {seconds[kRuns / 2], seconds[kRuns / 4], seconds[kRuns - 1 - kRuns / 4]};
}

void bench_read_limit(const Buffer& memory) {
  uint64_t sum = 0;
  const Times t = measure([&] {  // eight streams, the most that one core of the machines at hand can use
    const auto* words = reinterpret_cast<const uint64_t*>(memory.data());
    constexpr int64_t kStream = kWorkingSet / 8 / 8;
    for (int64_t i = 0; i < kStream; i += 8) {
      for (int64_t s = 0; s < 8; ++s) sum += words[s * kStream + i];
    }
  });
  std::printf("memory read %.1f GB/s%s\n", static_cast<double>(kWorkingSet) / t.median * 1e-9, sum == 1 ? "!" : "");
}

void bench_type(DType dtype, Isa isa, const Buffer& memory) {
  const BlockFormat& format = *find_format(dtype);
  const MatmulRecipe& recipe = *matmul_recipe(Numerics::kPortable, dtype);
  const int64_t file_bytes = tensor_bytes(dtype, {kN, kK});
  std::vector<std::byte> file(static_cast<size_t>(file_bytes));
  std::vector<float> row(static_cast<size_t>(kK));
  for (int64_t i = 0; i < kK; ++i) row[static_cast<size_t>(i)] = static_cast<float>(i * 7919 % 1999 - 999) * 1e-3f;
  for (int64_t j = 0; j < kN && format.encode != nullptr; ++j) {
    format.encode(row.data(), kK, file.data() + j * (file_bytes / kN));
  }
  const int64_t bytes = packed_bytes(dtype, recipe.layout, kN, kK);
  const Times pack = measure([&] { pack_weights(dtype, recipe.layout, file, kN, kK, 0, kN, memory.data()); });
  std::printf("%-8s pack %6.0f MB/s |", std::string(dtype_name(dtype)).c_str(),
              static_cast<double>(file_bytes) / pack.median * 1e-6);
  const int64_t copies = kWorkingSet / bytes;
  for (int64_t c = 1; c < copies; ++c)
    std::memcpy(memory.data() + c * bytes, memory.data(), static_cast<size_t>(bytes));

  const MatmulFn fn = matmul_table(dtype, recipe.layout)->best(isa).fn;
  for (const int64_t rows : {1, 2, 4, 8, 16, 32, 512}) {
    const Buffer x(act_row_bytes(recipe.act, kK) * rows), y(rows * kN * 4);
    const ActView act{recipe.act, x.data(), rows, kK};
    std::vector<float> input(static_cast<size_t>(rows * kK));
    for (size_t i = 0; i < input.size(); ++i) input[i] = row[i * 31 % row.size()];
    if (recipe.act == ActForm::kF32) {
      std::memcpy(x.data(), input.data(), input.size() * 4);
    } else {
      quantize_table(recipe.act)->best(isa).fn({input.data(), act}, {0, rows});
    }
    const int64_t used = rows < 64 ? copies : 1;
    const Times t = measure([&] {
      for (int64_t c = 0; c < used; ++c) {
        const WeightView w{dtype, recipe.layout, kN, kK, memory.data() + c * bytes};
        fn({.x = act, .w = w, .y = reinterpret_cast<float*>(y.data()), .y_stride = kN}, {0, kN / kNeuronGroup});
      }
    });
    if (rows < 64) {
      std::printf(" %ld: %.1f", static_cast<long>(rows), static_cast<double>(used * bytes) / t.median * 1e-9);
    } else {
      const auto ops = static_cast<double>(2 * rows * kN * kK);
      std::printf(" GB/s | %ld: %.3f (%.3f-%.3f) Top/s\n", static_cast<long>(rows), ops / t.median * 1e-12,
                  ops / t.high * 1e-12, ops / t.low * 1e-12);
    }
    std::fflush(stdout);
  }
}

}  // namespace
}  // namespace headrace

int main(int argc, char** argv) {
  using namespace headrace;
  const Isa isa = choose_isa(argc > 1 ? argv[1] : "");
  std::printf("%s, %s, k %ld, n %ld, one thread, %ld MiB of weights\n", cpu_model_name().c_str(),
              std::string(isa_name(isa)).c_str(), static_cast<long>(kK), static_cast<long>(kN),
              static_cast<long>(kWorkingSet >> 20));
  const Buffer memory(kWorkingSet + (1 << 20));
  bench_read_limit(memory);
  for (int i = 2; i < argc; ++i) {
    if (const std::optional<DType> dtype = dtype_from_name(argv[i])) bench_type(*dtype, isa, memory);
  }
  for (const BlockFormat* format : all_formats()) {
    if (argc <= 2) bench_type(format->dtype, isa, memory);
  }
}
