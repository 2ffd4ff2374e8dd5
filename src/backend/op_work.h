#pragma once

#include "backend/backend.h"

namespace headrace {

// What any backend needs to know of an operator's arguments: the table that holds its kernels (nullptr: none for this
// type) and how many items they have (the contracts in ops/ say what an item is).

inline const OpTable<EmbedFn>* op_table(const EmbedArgs&) noexcept { return &kEmbed; }
inline int64_t op_items(const EmbedArgs& args) noexcept { return args.rows; }

inline const OpTable<RmsNormFn>* op_table(const RmsNormArgs&) noexcept { return &kRmsNorm; }
inline int64_t op_items(const RmsNormArgs& args) noexcept { return args.rows; }

inline const OpTable<QuantizeFn>* op_table(const QuantizeArgs& args) noexcept { return quantize_table(args.y.form); }
inline int64_t op_items(const QuantizeArgs& args) noexcept { return args.y.rows; }

inline const OpTable<MatmulFn>* op_table(const MatmulArgs& args) noexcept {
  return matmul_table(args.w.dtype, args.w.layout);
}
inline int64_t op_items(const MatmulArgs& args) noexcept { return (args.w.n + kNeuronGroup - 1) / kNeuronGroup; }

inline const OpTable<AddFn>* op_table(const AddArgs&) noexcept { return &kAdd; }
inline int64_t op_items(const AddArgs& args) noexcept { return args.rows; }

inline const OpTable<SiluMulFn>* op_table(const SiluMulArgs&) noexcept { return &kSiluMul; }
inline int64_t op_items(const SiluMulArgs& args) noexcept { return args.rows; }

inline const OpTable<GatherRowsFn>* op_table(const GatherRowsArgs&) noexcept { return &kGatherRows; }
inline int64_t op_items(const GatherRowsArgs& args) noexcept { return args.rows; }

inline const OpTable<RopeTableFn>* op_table(const RopeTableArgs&) noexcept { return &kRopeTable; }
inline int64_t op_items(const RopeTableArgs& args) noexcept { return args.rows; }

inline const OpTable<RopeFn>* op_table(const RopeArgs&) noexcept { return &kRope; }
inline int64_t op_items(const RopeArgs& args) noexcept { return args.rows; }

inline const OpTable<KvWriteFn>* op_table(const KvWriteArgs&) noexcept { return &kKvWrite; }
inline int64_t op_items(const KvWriteArgs& args) noexcept { return args.rows; }

inline const OpTable<AttentionFn>* op_table(const AttentionArgs& args) noexcept {
  return &attention_table(args.layout.dtype);
}
inline int64_t op_items(const AttentionArgs& args) noexcept { return args.rows * args.layout.kv_heads; }

}  // namespace headrace
