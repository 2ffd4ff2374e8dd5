#include "ops/weight_layout.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/check.h"
#include "ops/bf16_pairs_layout.h"
#include "ops/interleaved_layout.h"
#include "ops/requant.h"
#include "quant/iq4_levels.h"

namespace headrace {
namespace {

int64_t row_bytes(DType dtype, int64_t k) noexcept {
  const DTypeInfo& info = dtype_info(dtype);
  return k / info.block_elems * info.block_bytes;
}
int64_t groups_of(int64_t n) noexcept { return (n + kNeuronGroup - 1) / kNeuronGroup; }

/// `blocks` blocks of one neuron, as the file has them, into numbers.
void unpack_unit(const BlockFormat& format, const std::byte* file, int blocks, NeuronUnit& out) noexcept {
  const int64_t block_bytes = dtype_info(format.dtype).block_bytes;
  if (format.unpack256 != nullptr) {
    UnpackedBlock256 block;
    format.unpack256(file, block);
    std::memcpy(out.q, block.q, sizeof block.q);
    std::memcpy(out.scale, block.scale, sizeof block.scale);
    std::memcpy(out.min, block.min, sizeof block.min);
    out.d[0] = block.d;
    out.m[0] = block.dmin;
    return;
  }
  for (int b = 0; b < blocks; ++b) {
    UnpackedBlock32 block;
    format.unpack32(file + b * block_bytes, block);
    std::memcpy(out.q + 32 * b, block.q, sizeof block.q);
    out.d[b] = block.d;
    out.m[b] = block.m;
  }
}

/// Bytes of a group in one of the interleaved layouts.
int64_t group_bytes(const InterleavedFormat& format, WeightLayout layout, int64_t k) noexcept {
  return layout == WeightLayout::kRequant16 ? requant_group_bytes(format, k) : interleaved_group_bytes(format, k);
}

/// Neurons [16 * group, last) of a matrix, the group's others zero. `scales`: where kRequant16 has those of its units,
/// else nullptr.
void pack_group(const InterleavedFormat& layout, std::span<const std::byte> rows, int64_t k, int64_t group,
                int64_t last, std::byte* out, std::byte* scales) noexcept {
  const BlockFormat& format = *find_format(layout.dtype);
  const int64_t stride = row_bytes(layout.dtype, k), first = group * kNeuronGroup;
  const auto neurons = static_cast<size_t>(std::min(kNeuronGroup, last - first));
  const std::byte* file = rows.data() + first * stride;
  std::array<NeuronUnit, kNeuronGroup> unit;
  NeuronUnit zero{};
  const auto zero_code = static_cast<int8_t>(layout.code_is_level ? quant::kIq4Levels[0] : -layout.code_offset);
  std::fill(std::begin(zero.q), std::end(zero.q), zero_code);
  std::fill(unit.begin() + neurons, unit.end(), zero);
  for (int64_t done = 0; done < k; done += kUnitK) {
    const auto blocks = static_cast<int>(std::min<int64_t>(kUnitK, k - done) / layout.block_elems);
    for (size_t j = 0; j < neurons; ++j) {
      unpack_unit(format, file + static_cast<int64_t>(j) * stride + row_bytes(layout.dtype, done), blocks, unit[j]);
    }
    write_unit(layout, unit.data(), blocks, out);
    if (scales != nullptr) {
      for (const NeuronUnit& neuron : unit) {
        const float r = requant_scale(layout, neuron, blocks);
        std::memcpy(scales, &r, sizeof r);
        scales += sizeof r;
      }
    }
    out += layout.unit_bytes;
  }
}

/// The values of one unit, with the roundings of the formats' definitions: the products d * scale and dmin * min first.
void decode_unit(const InterleavedFormat& layout, const NeuronUnit& unit, int blocks, float* out) noexcept {
  for (int i = 0; i < blocks * layout.block_elems; ++i) {
    const auto q = static_cast<float>(unit.q[i]);
    if (layout.block_elems == kSlabK) {
      const float product = unit.d[i / kSlabK] * q;
      out[i] = layout.has_min ? product + unit.m[i / kSlabK] : product;
    } else {
      const int s = i / layout.scale_elems;
      const float product = unit.d[0] * static_cast<float>(unit.scale[s]) * q;
      out[i] = layout.has_min ? product - unit.m[0] * static_cast<float>(unit.min[s]) : product;
    }
  }
}

}  // namespace

std::string_view weight_layout_name(WeightLayout layout) noexcept {
  constexpr std::array<std::string_view, kAllWeightLayouts.size()> kNames{"rows", "interleaved16", "requant16",
                                                                          "bf16pairs16"};
  return kNames[static_cast<size_t>(layout)];
}

bool has_interleaved_layout(DType dtype) noexcept { return find_interleaved(dtype) != nullptr; }

bool has_bf16_pairs_layout(DType dtype) noexcept { return dtype == DType::kBF16 || dtype == DType::kF16; }

int64_t packed_bytes(DType dtype, WeightLayout layout, int64_t n, int64_t k) noexcept {
  if (layout == WeightLayout::kRows) return n * row_bytes(dtype, k);
  if (layout == WeightLayout::kBf16Pairs16) return groups_of(n) * bf16_group_bytes(k);
  return groups_of(n) * group_bytes(*find_interleaved(dtype), layout, k);
}

void pack_weights(DType dtype, WeightLayout layout, std::span<const std::byte> rows, int64_t n, int64_t k,
                  int64_t first, int64_t last, std::byte* out) noexcept {
  const int64_t stride = row_bytes(dtype, k);
  HR_CHECK(rows.size() == static_cast<size_t>(n * stride), "matrix of ", rows.size(), " bytes, expected ", n * stride);
  HR_CHECK(first % kNeuronGroup == 0 && (last % kNeuronGroup == 0 || last == n), "neurons ", first, " to ", last);
  if (layout == WeightLayout::kRows) {
    if (last > first)
      std::memcpy(out + first * stride, rows.data() + first * stride, static_cast<size_t>((last - first) * stride));
    return;
  }
  if (layout == WeightLayout::kBf16Pairs16) {
    for (int64_t j = first; j < last; j += kNeuronGroup) {
      pack_bf16_group(dtype, rows.data() + j * stride, std::min(kNeuronGroup, last - j), k,
                      out + j / kNeuronGroup * bf16_group_bytes(k));
    }
    return;
  }
  const InterleavedFormat& format = *find_interleaved(dtype);
  for (int64_t group = first / kNeuronGroup; group < groups_of(last); ++group) {
    std::byte* to = out + group * group_bytes(format, layout, k);
    std::byte* scales = layout == WeightLayout::kRequant16 ? to + interleaved_group_bytes(format, k) : nullptr;
    pack_group(format, rows, k, group, last, to, scales);
  }
}

void unpack_weight_row(const WeightView& w, int64_t row, float* out) noexcept {
  if (w.layout == WeightLayout::kRows) {
    find_format(w.dtype)->decode(w.data + row * row_bytes(w.dtype, w.k), w.k, out);
    return;
  }
  if (w.layout == WeightLayout::kBf16Pairs16) {
    unpack_bf16_neuron(w.data + row / kNeuronGroup * bf16_group_bytes(w.k), row % kNeuronGroup, 0, w.k, out);
    return;
  }
  const InterleavedFormat& format = *find_interleaved(w.dtype);
  const std::byte* unit = w.data + row / kNeuronGroup * group_bytes(format, w.layout, w.k);
  NeuronUnit numbers;
  for (int64_t done = 0; done < w.k; done += kUnitK, unit += format.unit_bytes) {
    const auto blocks = static_cast<int>(std::min<int64_t>(kUnitK, w.k - done) / format.block_elems);
    read_unit(format, unit, blocks, static_cast<int>(row % kNeuronGroup), numbers);
    decode_unit(format, numbers, blocks, out + done);
  }
}

}  // namespace headrace
