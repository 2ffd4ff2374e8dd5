#include "ops/interleaved_layout.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/half.h"
#include "quant/iq4_levels.h"

namespace headrace {
namespace {

constexpr int kRowsInSlab = 8;  ///< k-rows
constexpr int kLanes = 16;

// Four codes of one neuron in one k-row travel as one 32-bit word: masks and shifts below act on all four bytes.
uint32_t load_word(const std::byte* p) noexcept {
  uint32_t word;
  std::memcpy(&word, p, 4);
  return word;
}
void store_word(std::byte* p, uint32_t word) noexcept { std::memcpy(p, &word, 4); }

constexpr uint32_t bytes_of(uint32_t value) noexcept { return value * 0x01010101u; }

/// One plane of a slab: `bits` bits of each code, beginning at bit `from`, `rows` k-rows to a vector.
struct Plane {
  int from, bits, rows;
};
struct Planes {
  std::array<Plane, 2> plane;
  int count;
};
constexpr Planes planes_of(int code_bits) noexcept {
  switch (code_bits) {
    case 2:
      return {{{{0, 2, 4}, {}}}, 1};
    case 3:
      return {{{{0, 2, 4}, {2, 1, 8}}}, 2};
    case 4:
      return {{{{0, 4, 2}, {}}}, 1};
    case 5:
      return {{{{0, 4, 2}, {4, 1, 8}}}, 2};
    case 6:
      return {{{{0, 4, 2}, {4, 2, 4}}}, 2};
    default:
      return {{{{0, 8, 1}, {}}}, 1};
  }
}

template <int from, int bits, int rows>
std::byte* write_plane(const std::byte (*codes)[kUnitK], std::byte* out) noexcept {
  for (int first = 0; first < kRowsInSlab; first += rows, out += 64) {
    for (int j = 0; j < kLanes; ++j) {
      uint32_t word = 0;
      for (int t = 0; t < rows; ++t) {
        const uint32_t code = load_word(codes[j] + 4 * (first + t));
        word |= ((code >> from) & bytes_of((1u << bits) - 1)) << (bits * t);
      }
      store_word(out + 4 * j, word);
    }
  }
  return out;
}

template <int code_bits>
void write_slab(const std::byte (*codes)[kUnitK], std::byte* out) noexcept {
  constexpr Planes kPlanes = planes_of(code_bits);
  constexpr Plane kFirst = kPlanes.plane[0], kSecond = kPlanes.plane[1];
  out = write_plane<kFirst.from, kFirst.bits, kFirst.rows>(codes, out);
  if constexpr (kPlanes.count == 2) write_plane<kSecond.from, kSecond.bits, kSecond.rows>(codes, out);
}

using WriteSlab = void (*)(const std::byte (*)[kUnitK], std::byte*) noexcept;
WriteSlab slab_writer(int code_bits) noexcept {
  switch (code_bits) {
    case 2:
      return write_slab<2>;
    case 3:
      return write_slab<3>;
    case 4:
      return write_slab<4>;
    case 5:
      return write_slab<5>;
    case 6:
      return write_slab<6>;
    default:
      return write_slab<8>;
  }
}

/// The codes of one neuron in one slab.
void read_slab(int code_bits, const std::byte* slab, int lane, uint8_t* codes) noexcept {
  const Planes planes = planes_of(code_bits);
  uint32_t words[kRowsInSlab]{};
  for (int p = 0; p < planes.count; ++p) {
    const Plane plane = planes.plane[static_cast<size_t>(p)];
    const uint32_t mask = bytes_of((1u << plane.bits) - 1);
    for (int first = 0; first < kRowsInSlab; first += plane.rows, slab += 64) {
      const uint32_t word = load_word(slab + 4 * lane);
      for (int t = 0; t < plane.rows; ++t) words[first + t] |= ((word >> (plane.bits * t)) & mask) << plane.from;
    }
  }
  std::memcpy(codes, words, sizeof words);
}

constexpr std::array<uint8_t, 256> codes_of_levels() noexcept {
  std::array<uint8_t, 256> codes{};
  for (uint8_t code = 0; code < 16; ++code) codes[static_cast<uint8_t>(quant::kIq4Levels[code])] = code;
  return codes;
}

void to_codes(const InterleavedFormat& format, const int8_t* q, int count, std::byte* codes) noexcept {
  if (format.code_is_level) {
    static constexpr std::array<uint8_t, 256> kCodes = codes_of_levels();
    for (int i = 0; i < count; ++i) codes[i] = std::byte{kCodes[static_cast<uint8_t>(q[i])]};
  } else {
    const auto offset = static_cast<uint8_t>(format.code_offset);
    for (int i = 0; i < count; ++i) codes[i] = static_cast<std::byte>(static_cast<uint8_t>(q[i]) + offset);
  }
}

void store_f16(std::byte* p, float value) noexcept {
  const uint16_t bits = f32_to_f16(value);
  std::memcpy(p, &bits, 2);
}
float load_f16(const std::byte* p) noexcept {
  uint16_t bits;
  std::memcpy(&bits, p, 2);
  return f16_to_f32(bits);
}

int sub_blocks(const InterleavedFormat& format) noexcept { return kUnitK / format.scale_elems; }
/// Place of a sub-block's byte of a neuron inside the scales (or mins).
int scale_at(int lane, int sub_block) noexcept { return sub_block / 4 * 64 + 4 * lane + sub_block % 4; }

}  // namespace

const InterleavedFormat* find_interleaved(DType dtype) noexcept {
  const auto* row = std::find_if(std::begin(kInterleavedFormats), std::end(kInterleavedFormats),
                                 [dtype](const InterleavedFormat& f) { return f.dtype == dtype; });
  return row == std::end(kInterleavedFormats) ? nullptr : row;
}

int64_t interleaved_group_bytes(const InterleavedFormat& format, int64_t k) noexcept {
  return k / format.block_elems * format.unit_step_bytes;
}

void write_unit(const InterleavedFormat& format, const NeuronUnit neurons[16], int blocks, std::byte* unit) noexcept {
  const int count = blocks * format.block_elems;
  std::byte codes[kLanes][kUnitK];
  for (int j = 0; j < kLanes; ++j) to_codes(format, neurons[j].q, count, codes[j]);
  const WriteSlab write = slab_writer(format.code_bits);
  std::byte* out = unit;
  for (int k = 0; k < count; k += kSlabK, out += format.slab_bytes) {
    write(reinterpret_cast<const std::byte(*)[kUnitK]>(&codes[0][k]), out);
  }
  if (format.block_elems == kUnitK) {
    std::byte* mins = out + sub_blocks(format) * kLanes;
    for (int j = 0; j < kLanes; ++j) {
      for (int s = 0; s < sub_blocks(format); ++s) {
        const auto scale = static_cast<uint8_t>(neurons[j].scale[s]);
        const uint8_t min = neurons[j].min[s];
        out[scale_at(j, s)] = static_cast<std::byte>(format.nibble_scales ? scale | min << 4 : scale);
        if (format.has_min && !format.nibble_scales) mins[scale_at(j, s)] = std::byte{min};
      }
    }
    out += format.scale_bytes;
  }
  for (int b = 0; b < blocks; ++b, out += kGroupF16Bytes) {
    for (int j = 0; j < kLanes; ++j) store_f16(out + 2 * j, neurons[j].d[b]);
  }
  for (int b = 0; format.has_min && b < blocks; ++b, out += kGroupF16Bytes) {
    for (int j = 0; j < kLanes; ++j) store_f16(out + 2 * j, neurons[j].m[b]);
  }
  if (format.block_elems == kUnitK) std::fill(out, unit + format.unit_bytes, std::byte{0});
}

void read_unit(const InterleavedFormat& format, const std::byte* unit, int blocks, int lane, NeuronUnit& out) noexcept {
  const std::byte* in = unit;
  for (int k = 0; k < blocks * format.block_elems; k += kSlabK, in += format.slab_bytes) {
    uint8_t codes[kSlabK];
    read_slab(format.code_bits, in, lane, codes);
    for (int i = 0; i < kSlabK; ++i) {
      out.q[k + i] =
          static_cast<int8_t>(format.code_is_level ? quant::kIq4Levels[codes[i]] : codes[i] - format.code_offset);
    }
  }
  if (format.block_elems == kUnitK) {
    const std::byte* mins = in + sub_blocks(format) * kLanes;
    for (int s = 0; s < sub_blocks(format); ++s) {
      const auto byte = std::to_integer<uint8_t>(in[scale_at(lane, s)]);
      out.scale[s] = static_cast<int8_t>(format.nibble_scales ? byte & 15 : byte);
      if (format.has_min) {
        out.min[s] =
            format.nibble_scales ? static_cast<uint8_t>(byte >> 4) : std::to_integer<uint8_t>(mins[scale_at(lane, s)]);
      }
    }
    in += format.scale_bytes;
  }
  for (int b = 0; b < blocks; ++b, in += kGroupF16Bytes) out.d[b] = load_f16(in + 2 * lane);
  for (int b = 0; format.has_min && b < blocks; ++b, in += kGroupF16Bytes) out.m[b] = load_f16(in + 2 * lane);
}

}  // namespace headrace
