#pragma once

#include "ops/matmul_interleaved_avx512.h"

/// The outliers of the rows of a pass, for products with many rows. Some models have them in few channels, the same in
/// most rows; behind an activation function each row has its own. Either way a row alone would decode a weight for
/// each, which takes ten times as long as multiplying by it. Here they are sorted by slabs of 32 inputs: for a group of
/// neurons, the inputs of a slab that any row needs are decoded once, and then each outlier is one multiply-add.
///
/// In an unnamed namespace, unlike other headers: each variant file needs a copy of its own, compiled for its own
/// instruction set, that the linker cannot exchange for another's.
namespace headrace {
namespace {

/// Decodes inputs of one slab, slab `b` of a unit of `blocks` blocks, to w[input * stride + neuron]: those whose bits
/// `wanted` has.
template <DType T>
void decode_slab(const std::byte* unit, int blocks, int b, uint32_t wanted, float* w, int stride) {
  constexpr InterleavedFormat kFormat = interleaved_format(T);
  const SubBlock halves[]{sub_block_of<T>(unit, blocks, b * kSlabK), sub_block_of<T>(unit, blocks, b * kSlabK + 16)};
  alignas(64) __m512i codes[kKRows];
  expand_slab<T>(unit + b * kFormat.slab_bytes, codes);
  const __m512i offset = _mm512_set1_epi32(offset_of(kFormat)), byte = _mm512_set1_epi32(255);
  for (; wanted != 0; wanted &= wanted - 1) {
    const int i = __builtin_ctz(wanted);
    const __m512i code = _mm512_and_si512(_mm512_srl_epi32(codes[i / 4], _mm_cvtsi32_si128(i % 4 * 8)), byte);
    _mm512_store_ps(w + i * stride, weights_of<T>(halves[i / 16], _mm512_sub_epi32(code, offset)));
  }
}

/// Room for the rows of a pass, `most_rows`, and so many outliers; what does not fit stays with its row.
template <int64_t most_rows, int most_entries>
class OutlierSheet {
 public:
  /// Takes the outliers of rows [first, last). position_of(row): which accumulator is the row's.
  template <class PositionOf>
  void collect(const ActView& x, int64_t first, int64_t last, const PositionOf& position_of) {
    const int64_t row_bytes = act_row_bytes(x.form, x.k);
    const std::byte* const heads = x.data + act_outlier_offset(x.form, x.k) + first * row_bytes;
    slabs_ = x.k <= kMostSlabs * kSlabK ? static_cast<int>(x.k / kSlabK) : 0;
    __builtin_memset(begin_, 0, sizeof(begin_[0]) * static_cast<size_t>(slabs_ + 2));
    __builtin_memset(wanted_, 0, sizeof(wanted_[0]) * static_cast<size_t>(slabs_));
    int entries = 0;
    for (int64_t r = 0; r < last - first; ++r) {
      const std::byte* head = heads + r * row_bytes;
      const int count = load_int(head);
      held_[r] = count == 0 || (slabs_ > 0 && entries + count <= most_entries);
      if (!held_[r]) continue;
      entries += count;
      for (int o = 0; o < count; ++o) {
        const int i = load_int(outlier_at(head, o));
        ++begin_[i / kSlabK + 2];
        wanted_[i / kSlabK] |= 1u << (i % kSlabK);
      }
    }
    // begin_[s + 1]: where the next outlier of slab s goes; in the end, where slab s + 1 begins.
    for (int s = 0; s < slabs_; ++s) begin_[s + 2] += begin_[s + 1];
    for (int64_t r = 0; r < last - first; ++r) {
      const std::byte* head = heads + r * row_bytes;
      const int count = held_[r] ? load_int(head) : 0;
      const auto position = static_cast<uint16_t>(position_of(first + r));
      for (int o = 0; o < count; ++o) {
        const std::byte* outlier = outlier_at(head, o);
        const int i = load_int(outlier);
        entries_[begin_[i / kSlabK + 1]++] = {position, static_cast<uint16_t>(i % kSlabK), load_f32(outlier + 4)};
      }
    }
  }

  /// Whether the outliers of a row, counted from the first of those collected, are here.
  [[nodiscard]] bool holds(int64_t row) const { return held_[row]; }

  /// As add_outliers for all rows that are held, those of a row in their order, and `count` groups side by side, at
  /// most `most`: what an outlier costs by itself, it costs once for all of them. weights: of the first group.
  /// place(position, g): the accumulator of a row and group.
  template <DType T, int most, class Place>
  void add(const std::byte* weights, int64_t group_bytes, int count, int64_t k, const Place& place) const {
    constexpr int kShare = interleaved_format(T).unit_bytes / kSlabsOfUnit;  // a slab and its part of the scales
    alignas(64) float w[kSlabK][most][kNeuronGroup];
    for (int s = 0; s < slabs_; ++s) {
      if (wanted_[s] == 0) continue;
      const std::byte* unit = weights + s / kSlabsOfUnit * int64_t{interleaved_format(T).unit_bytes};
      const int blocks = blocks_of_unit<T>(k, s * int64_t{kSlabK});
      for (int g = 0; g < count; ++g) {
        fetch(unit + g * group_bytes + s % kSlabsOfUnit * kShare, kShare);
        decode_slab<T>(unit + g * group_bytes, blocks, s % kSlabsOfUnit, wanted_[s], w[0][g], most * kNeuronGroup);
      }
      if (count == most) {
        add_entries<most>(s, w, most, place);
      } else {
        add_entries<1>(s, w, count, place);
      }
    }
  }

 private:
  struct Entry {
    uint16_t position, input;  // input: within its slab
    float x;
  };
  static constexpr int kMostSlabs = 2048, kSlabsOfUnit = kUnitK / kSlabK;

  /// The outliers of a slab, for `count` groups, a multiple of `step`.
  template <int step, int most, class Place>
  void add_entries(int slab, const float (&w)[kSlabK][most][kNeuronGroup], int count, const Place& place) const {
    for (int e = begin_[slab]; e < begin_[slab + 1]; ++e) {
      const Entry& entry = entries_[e];
      const __m512 x = _mm512_set1_ps(entry.x);
      for (int first = 0; first < count; first += step) {
#pragma GCC unroll 8
        for (int g = 0; g < step; ++g) {
          float* sum = place(entry.position, first + g);
          _mm512_store_ps(sum, _mm512_fmadd_ps(_mm512_load_ps(w[entry.input][first + g]), x, _mm512_load_ps(sum)));
        }
      }
    }
  }

  static const std::byte* outlier_at(const std::byte* head, int o) {
    return head + kOutlierHeadBytes + o * static_cast<int64_t>(sizeof(Outlier));
  }

  int slabs_ = 0;
  int begin_[kMostSlabs + 2];
  uint32_t wanted_[kMostSlabs];
  bool held_[most_rows];
  Entry entries_[most_entries];
};

}  // namespace
}  // namespace headrace
