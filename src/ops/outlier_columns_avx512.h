#pragma once

#include "ops/matmul_interleaved_avx512.h"

/// The outliers of the rows of a pass, for products with many rows: outliers come in few channels, the same ones in
/// most rows, so that weights are decoded once for a group, not for each row. Decoding one takes ten times as long as
/// multiplying by it.
///
/// In an unnamed namespace, unlike other headers: each variant file needs a copy of its own, compiled for its own
/// instruction set, that the linker cannot exchange for another's.
namespace headrace {
namespace {

/// Room for the outliers of `most_rows` rows and for the weights of `groups` groups.
template <int64_t most_rows, int groups>
class OutlierColumns {
 public:
  /// Takes the outliers of rows [first, last), at most `most_rows`.
  void collect(const ActView& x, int64_t first, int64_t last) {
    columns_ = 0;
    holds_all_ = true;
    int entries = 0;
    __builtin_memset(columns_of_hash_, 0xff, sizeof(columns_of_hash_));
    const int64_t row_bytes = act_row_bytes(x.form, x.k);
    first_head_ = x.data + act_outlier_offset(x.form, x.k) + first * row_bytes;
    row_bytes_ = row_bytes;
    const std::byte* head = first_head_;
    for (int64_t row = 0; row < last - first; ++row, head += row_bytes) {
      const int count = load_int(head);
      first_entry_[row] = static_cast<uint16_t>(entries);
      bool fits = entries + count <= kMostEntries;
      for (int o = 0; o < count && fits; ++o) {
        const std::byte* outlier = head + kOutlierHeadBytes + o * static_cast<int64_t>(sizeof(Outlier));
        const int column = column_of(load_int(outlier));
        fits = column >= 0;
        if (fits) entries_[entries + o] = {column, load_f32(outlier + 4)};
      }
      entries_of_[row] = fits ? static_cast<int16_t>(count) : int16_t{-1};
      if (fits) entries += count;
      holds_all_ = holds_all_ && fits;
    }
  }

  /// Decodes the columns of a group; `g`: which of those at a time.
  template <DType T>
  void decode(int g, const std::byte* weights, int64_t k) {
    for (int c = 0; c < columns_; ++c) _mm512_store_ps(weights_[c][g], weights_at<T>(weights, k, input_[c]));
  }

  /// Whether the row has its outliers here.
  [[nodiscard]] bool holds(int64_t row) const { return entries_of_[row] >= 0; }
  /// Whether each row of those collected has.
  [[nodiscard]] bool holds_all() const { return holds_all_; }

  /// As add_outliers, for row `row` of those collected, counted from the first of them.
  template <DType T>
  [[nodiscard]] __m512 add(int g, const std::byte* weights, int64_t k, int64_t row, __m512 acc) const {
    if (entries_of_[row] < 0) return add_outliers<T>(weights, k, first_head_ + row * row_bytes_, acc);
    const Entry* entry = entries_ + first_entry_[row];
    for (int o = 0; o < entries_of_[row]; ++o, ++entry) {
      acc = _mm512_fmadd_ps(_mm512_load_ps(weights_[entry->column][g]), _mm512_set1_ps(entry->x), acc);
    }
    return acc;
  }

 private:
  struct Entry {
    int column;
    float x;
  };
  static constexpr int kMostColumns = 256, kMostEntries = 8192, kHashes = 1024;

  /// The column of an input, a new one if need be; -1 where there is no room.
  int column_of(int input) {
    int hash = input % kHashes;
    for (; columns_of_hash_[hash] >= 0; hash = (hash + 1) % kHashes) {
      if (input_[columns_of_hash_[hash]] == input) return columns_of_hash_[hash];
    }
    if (columns_ == kMostColumns) return -1;
    columns_of_hash_[hash] = static_cast<int16_t>(columns_);
    input_[columns_] = input;
    return columns_++;
  }

  int columns_ = 0;
  bool holds_all_ = true;
  int64_t row_bytes_ = 0;
  const std::byte* first_head_ = nullptr;
  int input_[kMostColumns];
  int16_t columns_of_hash_[kHashes];  ///< open addressing; -1: free
  uint16_t first_entry_[most_rows];
  int16_t entries_of_[most_rows];  ///< -1: did not fit, read from the record
  Entry entries_[kMostEntries];
  alignas(64) float weights_[kMostColumns][groups][kNeuronGroup];
};

}  // namespace
}  // namespace headrace
