#pragma once

#include "backend/backend.h"
#include "backend/fakedev/device_memory.h"

namespace headrace {

// Replaces every device address in an operator's arguments by the address at which the queue's thread finds it. Each
// overload names all members of its struct, so that one more member stops the build here: is it an address?

inline void translate(const DeviceMemory& m, WeightView& view) noexcept {
  auto& [dtype, layout, n, k, data] = view;
  data = m.local(data);
}
inline void translate(const DeviceMemory& m, ActView& view) noexcept {
  auto& [form, data, rows, k] = view;
  data = m.local(data);
}
inline void translate(const DeviceMemory& m, EmbedArgs& args) noexcept {
  auto& [table, tokens, y, rows, scale] = args;
  translate(m, table);
  tokens = m.local(tokens);
  y = m.local(y);
}
inline void translate(const DeviceMemory& m, RmsNormArgs& args) noexcept {
  auto& [x, w, y, rows, dim, eps] = args;
  x = m.local(x);
  w = m.local(w);
  y = m.local(y);
}
inline void translate(const DeviceMemory& m, QuantizeArgs& args) noexcept {
  auto& [x, y] = args;
  x = m.local(x);
  translate(m, y);
}
inline void translate(const DeviceMemory& m, MatmulArgs& args) noexcept {
  auto& [x, w, bias, y, y_stride] = args;
  translate(m, x);
  translate(m, w);
  bias = m.local(bias);
  y = m.local(y);
}
inline void translate(const DeviceMemory& m, AddArgs& args) noexcept {
  auto& [a, b, y, rows, dim] = args;
  a = m.local(a);
  b = m.local(b);
  y = m.local(y);
}
inline void translate(const DeviceMemory& m, SiluMulArgs& args) noexcept {
  auto& [gate, up, y, rows, dim] = args;
  gate = m.local(gate);
  up = m.local(up);
  y = m.local(y);
}
inline void translate(const DeviceMemory& m, GatherRowsArgs& args) noexcept {
  auto& [x, index, y, rows, dim] = args;
  x = m.local(x);
  index = m.local(index);
  y = m.local(y);
}
inline void translate(const DeviceMemory& m, RopeTableArgs& args) noexcept {
  auto& [positions, inv_freq, cos_sin, rows, half, scale] = args;
  positions = m.local(positions);
  inv_freq = m.local(inv_freq);
  cos_sin = m.local(cos_sin);
}
inline void translate(const DeviceMemory& m, RopeArgs& args) noexcept {
  auto& [x, cos_sin, rows, heads, head_dim, half, layout] = args;
  x = m.local(x);
  cos_sin = m.local(cos_sin);
}
inline void translate(const DeviceMemory& m, KvWriteArgs& args) noexcept {
  auto& [layout, k, v, slots, slab, rows] = args;
  k = m.local(k);
  v = m.local(v);
  slots = m.local(slots);
  slab = m.local(slab);
}
inline void translate(const DeviceMemory& m, AttentionArgs& args) noexcept {
  auto& [layout, q, slab, block_table, table_begin, positions, out, rows, heads, window, scale] = args;
  q = m.local(q);
  slab = m.local(slab);
  block_table = m.local(block_table);
  table_begin = m.local(table_begin);
  positions = m.local(positions);
  out = m.local(out);
}

}  // namespace headrace
