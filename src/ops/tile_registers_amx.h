#pragma once

#include <cstdint>

/// Tile instructions with the register's number as a template argument: the intrinsics want a literal, which would have
/// code that differs in registers only written out for each.
///
/// In an unnamed namespace, unlike other headers: each variant file needs a copy of its own, compiled for its own
/// instruction set, that the linker cannot exchange for another's.
namespace headrace::amx {
namespace {

template <int tile>
inline void tile_zero() {
  asm volatile("tilezero %%tmm%c0" ::"i"(tile));
}
/// Does not tell the compiler what it reads: a barrier belongs between stores to that memory and the first load.
template <int tile>
inline void tile_load(const void* p, int64_t row_bytes) {
  asm volatile("tileloadd (%0,%1,1), %%tmm%c2" ::"r"(p), "r"(row_bytes), "i"(tile));
}
template <int tile>
inline void tile_store(void* p, int64_t row_bytes) {
  asm volatile("tilestored %%tmm%c2, (%0,%1,1)" ::"r"(p), "r"(row_bytes), "i"(tile) : "memory");
}
/// sum += a * b, signed by signed bytes.
template <int sum, int a, int b>
inline void tile_dot_ss() {
  asm volatile("tdpbssd %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(sum), "i"(a), "i"(b));
}
/// sum += a * b, signed by unsigned bytes.
template <int sum, int a, int b>
inline void tile_dot_su() {
  asm volatile("tdpbsud %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(sum), "i"(a), "i"(b));
}
/// sum += a * b, pairs of bf16.
template <int sum, int a, int b>
inline void tile_dot_bf16() {
  asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(sum), "i"(a), "i"(b));
}

}  // namespace
}  // namespace headrace::amx
