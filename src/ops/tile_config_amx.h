#pragma once

#include <immintrin.h>

#include <cstdint>

/// The shapes of AMX tile registers. In an unnamed namespace, unlike other headers: each variant file needs a copy of
/// its own, compiled for its own instruction set, that the linker cannot exchange for another's.
namespace headrace::amx {
namespace {

/// What ldtilecfg reads.
struct alignas(64) TileConfig {
  uint8_t palette = 1;
  uint8_t start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t row_bytes[16] = {};
  uint8_t rows[16] = {};

  void shape(int tile, int tile_rows, int bytes) {
    rows[tile] = static_cast<uint8_t>(tile_rows);
    row_bytes[tile] = static_cast<uint16_t>(bytes);
  }
  void load() const {
    asm volatile("" ::: "memory");  // _tile_loadconfig tells g++ 12 of eight bytes only
    _tile_loadconfig(this);
  }
};

}  // namespace
}  // namespace headrace::amx
