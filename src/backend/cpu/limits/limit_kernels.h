#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/isa.h"

/// Loops that do one thing as fast as a core can, to measure the limits that bind real kernels.
namespace headrace {

/// Arithmetic in registers.
struct PeakKernel {
  std::string_view name;
  Isa isa = Isa::kRef;
  double ops_per_round = 0;  ///< an operation is a multiplication or an addition
  void (*run)(int64_t rounds) noexcept = nullptr;
};
/// All of this build, whatever the machine has.
[[nodiscard]] std::span<const PeakKernel> peak_kernels() noexcept;

/// Reads [data, data + bytes) by 8 streams side by side, each fetched ahead as weights are. `bytes` is a multiple of
/// 512. What is returned depends on every byte.
using ReadFn = uint64_t (*)(const std::byte* data, int64_t bytes) noexcept;
[[nodiscard]] ReadFn read_kernel(Isa isa) noexcept;

inline constexpr int kReadStreams = 8;
inline constexpr int64_t kReadAheadBytes = 2048;

namespace avx2 {
void peak_f32(int64_t rounds) noexcept;
void peak_int8(int64_t rounds) noexcept;
uint64_t read_streams(const std::byte* data, int64_t bytes) noexcept;
}  // namespace avx2
namespace avx512 {
void peak_f32(int64_t rounds) noexcept;
void peak_int8(int64_t rounds) noexcept;
void peak_bf16(int64_t rounds) noexcept;
uint64_t read_streams(const std::byte* data, int64_t bytes) noexcept;
}  // namespace avx512
namespace amx {
void peak_int8(int64_t rounds) noexcept;
void peak_bf16(int64_t rounds) noexcept;
}  // namespace amx

}  // namespace headrace
