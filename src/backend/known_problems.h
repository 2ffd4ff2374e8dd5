#pragma once

#include <cstddef>
#include <span>

#include "backend/backend.h"

namespace headrace {

/// Where a problem lays out its inputs and its output.
class ProblemMemory {
 public:
  virtual ~ProblemMemory() = default;
  /// A copy of `bytes` in this memory, 64-byte aligned. Lives as long as the memory.
  virtual std::byte* place(std::span<const std::byte> bytes) = 0;
};

/// A small fixed call of an operator. Its output was filled with a pattern, so that what must stay unwritten is
/// compared too: two kernels agree when all `output_bytes` do.
template <class Args>
struct KnownProblem {
  Args args;
  std::byte* output = nullptr;
  int64_t output_bytes = 0;
};

/// How big: rows of activations, and a factor on the widths.
struct ProblemSize {
  int64_t rows = 5;
  int64_t widths = 1;
};

// Inputs come from a fixed generator; widths are awkward on purpose (no multiple of a vector, ragged last group).
KnownProblem<EmbedArgs> embed_problem(ProblemMemory& memory, ProblemSize size, DType dtype, WeightLayout layout);
KnownProblem<RmsNormArgs> rms_norm_problem(ProblemMemory& memory, ProblemSize size);
KnownProblem<QuantizeArgs> quantize_problem(ProblemMemory& memory, ProblemSize size, ActForm form);
/// Activations take the form that goes with the layout: f32 for kRows, else that of the portable recipe of `dtype`.
KnownProblem<MatmulArgs> matmul_problem(ProblemMemory& memory, ProblemSize size, DType dtype, WeightLayout layout);
KnownProblem<AddArgs> add_problem(ProblemMemory& memory, ProblemSize size);
KnownProblem<SiluMulArgs> silu_mul_problem(ProblemMemory& memory, ProblemSize size);
KnownProblem<GatherRowsArgs> gather_rows_problem(ProblemMemory& memory, ProblemSize size);
KnownProblem<RopeTableArgs> rope_table_problem(ProblemMemory& memory, ProblemSize size);
KnownProblem<RopeArgs> rope_problem(ProblemMemory& memory, ProblemSize size, RopeLayout layout);
KnownProblem<KvWriteArgs> kv_write_problem(ProblemMemory& memory, ProblemSize size, DType kv_dtype);
/// Its last row sees more than 512 positions, so that chunks are joined.
KnownProblem<AttentionArgs> attention_problem(ProblemMemory& memory, ProblemSize size, DType kv_dtype, int32_t window);

}  // namespace headrace
