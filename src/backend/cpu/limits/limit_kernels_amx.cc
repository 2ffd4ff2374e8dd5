#include <immintrin.h>

#include "backend/cpu/limits/limit_kernels.h"
#include "ops/tile_config_amx.h"

namespace headrace::amx {
namespace {

/// Eight tiles of 16 rows of 64 bytes, all zero.
void configure() {
  TileConfig config;
  for (int tile = 0; tile < 8; ++tile) config.shape(tile, 16, 64);
  config.load();
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  _tile_zero(4);
  _tile_zero(5);
  _tile_zero(6);
  _tile_zero(7);
}

}  // namespace

void peak_int8(int64_t rounds) noexcept {
  configure();
  for (int64_t r = 0; r < rounds; ++r) {
    _tile_dpbssd(0, 4, 6);
    _tile_dpbssd(1, 5, 6);
    _tile_dpbssd(2, 4, 7);
    _tile_dpbssd(3, 5, 7);
  }
  _tile_release();
}

void peak_bf16(int64_t rounds) noexcept {
  configure();
  for (int64_t r = 0; r < rounds; ++r) {
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 5, 6);
    _tile_dpbf16ps(2, 4, 7);
    _tile_dpbf16ps(3, 5, 7);
  }
  _tile_release();
}

}  // namespace headrace::amx
