#include "backend/cpu/limits/limit_kernels.h"

#include <array>
#include <cstring>

#include "ops/op_table.h"

namespace headrace {
namespace {

constexpr std::array kPeaks{
    PeakKernel{"f32 fused multiply-add, AVX2", Isa::kAvx2, 12 * 8 * 2, HR_X86(avx2::peak_f32)},
    PeakKernel{"int8 by maddubs, madd, add, AVX2", Isa::kAvx2, 8 * 32 * 2, HR_X86(avx2::peak_int8)},
    PeakKernel{"f32 fused multiply-add, AVX-512", Isa::kAvx512, 16 * 16 * 2, HR_X86(avx512::peak_f32)},
    PeakKernel{"int8 by vpdpbusd, AVX-512", Isa::kAvx512, 16 * 64 * 2, HR_X86(avx512::peak_int8)},
    PeakKernel{"bf16 by vdpbf16ps, AVX-512", Isa::kAvx512, 16 * 32 * 2, HR_X86(avx512::peak_bf16)},
    PeakKernel{"int8, AMX tiles", Isa::kAmx, 4.0 * 16 * 16 * 64 * 2, HR_X86(amx::peak_int8)},
    PeakKernel{"bf16, AMX tiles", Isa::kAmx, 4.0 * 16 * 16 * 32 * 2, HR_X86(amx::peak_bf16)},
};

uint64_t read_streams_plain(const std::byte* data, int64_t bytes) noexcept {
  constexpr int64_t kLine = 64;
  const int64_t stream = bytes / kReadStreams;
  uint64_t sum = 0;
  for (int64_t i = 0; i < stream; i += kLine) {
    for (int s = 0; s < kReadStreams; ++s) {
      uint64_t words[kLine / 8];
      std::memcpy(words, data + s * stream + i, kLine);
      for (const uint64_t word : words) sum += word;
    }
  }
  return sum;
}

}  // namespace

std::span<const PeakKernel> peak_kernels() noexcept {
  return HR_HAS_X86 ? std::span<const PeakKernel>(kPeaks) : std::span<const PeakKernel>();
}

ReadFn read_kernel(Isa isa) noexcept {
  if (HR_HAS_X86 && isa >= Isa::kAvx512) return HR_X86(avx512::read_streams);
  if (HR_HAS_X86 && isa >= Isa::kAvx2) return HR_X86(avx2::read_streams);
  return read_streams_plain;
}

}  // namespace headrace
