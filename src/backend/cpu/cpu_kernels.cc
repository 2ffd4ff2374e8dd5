#include "backend/cpu/cpu_kernels.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <span>

#include "backend/choose_kernel.h"
#include "backend/cpu/host_memory.h"
#include "backend/known_problems.h"
#include "backend/op_work.h"
#include "base/cat.h"
#include "quant/format.h"

namespace headrace {
namespace {

class HostProblemMemory final : public ProblemMemory {
 public:
  std::byte* place(std::span<const std::byte> bytes) override {
    const auto size = static_cast<int64_t>(bytes.size());
    pieces_.emplace_back(static_cast<std::byte*>(allocate_host_memory(size)), Release{size});
    if (size > 0) std::memcpy(pieces_.back().get(), bytes.data(), bytes.size());
    return pieces_.back().get();
  }

 private:
  struct Release {
    int64_t bytes;
    void operator()(std::byte* memory) const noexcept { release_host_memory(memory, bytes); }
  };
  std::vector<std::unique_ptr<std::byte, Release>> pieces_;
};

/// Whether two kernels give the same output bytes. The items are done in two ranges, so that a kernel that minds the
/// split is found too.
template <class Args, class Fn, class Make>
bool agree(Fn reference, Fn candidate, const Make& make) {
  HostProblemMemory memory;
  const KnownProblem<Args> problem = make(memory);
  const auto bytes = static_cast<size_t>(problem.output_bytes);
  const std::byte* const before = memory.place({problem.output, bytes});
  const int64_t items = op_items(problem.args);
  reference(problem.args, {0, items});
  const std::byte* const want = memory.place({problem.output, bytes});
  std::memcpy(problem.output, before, bytes);
  candidate(problem.args, {items / 2, items});
  candidate(problem.args, {0, items / 2});
  return std::memcmp(problem.output, want, bytes) == 0;
}

/// Chooses from `table`: a candidate must solve all of the problems that `makers` make as the reference does.
template <class Args, class Fn, class... Makers>
Fn choose(CpuKernels& kernels, std::string op, const OpTable<Fn>& table, Isa isa, const Makers&... makers) {
  const OpVariant<Fn>& chosen = choose_kernel(
      table, isa, [&](Fn candidate) { return (agree<Args>(table.reference().fn, candidate, makers) && ...); });
  kernels.names.push_back({.op = std::move(op), .variant = std::string(isa_name(chosen.isa))});
  return chosen.fn;
}

constexpr ProblemSize kOneRow{.rows = 1};
constexpr ProblemSize kRows{.rows = 6};          // more than one tile of rows, the last one ragged
constexpr ProblemSize kTilesOfRows{.rows = 18};  // the same for tile registers, of 16 rows, for which 6 are too few

MatmulFn choose_matmul(CpuKernels& kernels, std::string op, DType dtype, WeightLayout layout, Isa isa) {
  return choose<MatmulArgs>(
      kernels, std::move(op), *matmul_table(dtype, layout), isa,
      [&](ProblemMemory& m) { return matmul_problem(m, kOneRow, dtype, layout); },
      [&](ProblemMemory& m) { return matmul_problem(m, kRows, dtype, layout); },
      [&](ProblemMemory& m) { return matmul_problem(m, kTilesOfRows, dtype, layout); });
}

std::string matmul_name(DType dtype, WeightLayout layout) {
  return cat("matmul ", dtype_name(dtype), " ", weight_layout_name(layout));
}

void choose_matmuls(CpuKernels& kernels, Isa isa) {
  for (const BlockFormat* const format : all_formats()) {
    const DType dtype = format->dtype;
    for (const WeightLayout layout : kAllWeightLayouts) {
      if (matmul_table(dtype, layout) == nullptr) continue;
      auto& by_rows = kernels.matmul[static_cast<size_t>(dtype)][static_cast<size_t>(layout)];
      by_rows.fill({.fn = choose_matmul(kernels, matmul_name(dtype, layout), dtype, layout, isa), .grain = 1});
    }
  }
}

void choose_tuned_matmuls(CpuKernels& kernels, Isa isa, const CpuTuning& tuning) {
  for (const auto& [key, choice] : tuning) {
    const auto [dtype, layout, rows] = key;
    if (matmul_table(dtype, layout) == nullptr) continue;
    std::string op = cat(matmul_name(dtype, layout), ", ", row_class_name(rows), " rows (tuned)");
    kernels.matmul[static_cast<size_t>(dtype)][static_cast<size_t>(layout)][static_cast<size_t>(rows)] = {
        .fn = choose_matmul(kernels, std::move(op), dtype, layout, std::min(isa, choice.isa)),
        .grain = std::max(choice.grain, 1)};
  }
}

/// One kernel decodes every type: it must do so for each.
void choose_embed(CpuKernels& kernels, Isa isa) {
  const auto decodes_all = [](EmbedFn candidate) {
    for (const BlockFormat* const format : all_formats()) {
      for (const WeightLayout layout : kAllWeightLayouts) {
        if (matmul_table(format->dtype, layout) == nullptr) continue;
        const auto make = [&](ProblemMemory& m) { return embed_problem(m, kRows, format->dtype, layout); };
        if (!agree<EmbedArgs>(kEmbed.reference().fn, candidate, make)) return false;
      }
    }
    return true;
  };
  const OpVariant<EmbedFn>& chosen = choose_kernel(kEmbed, isa, decodes_all);
  kernels.names.push_back({.op = std::string(kEmbed.name()), .variant = std::string(isa_name(chosen.isa))});
  kernels.embed = chosen.fn;
}

void choose_quantize(CpuKernels& kernels, Isa isa) {
  for (const ActForm form : kRoundedActForms) {
    kernels.quantize[static_cast<size_t>(form)] =
        choose<QuantizeArgs>(kernels, cat("quantize ", act_form_name(form)), *quantize_table(form), isa,
                             [&](ProblemMemory& m) { return quantize_problem(m, kRows, form); });
  }
}

AttentionFn choose_attention(CpuKernels& kernels, Isa isa, DType kv_dtype) {
  return choose<AttentionArgs>(
      kernels, cat("attention ", dtype_name(kv_dtype)), attention_table(kv_dtype), isa,
      [&](ProblemMemory& m) { return attention_problem(m, {.rows = 5}, kv_dtype, 0); },
      [&](ProblemMemory& m) { return attention_problem(m, {.rows = 5}, kv_dtype, 45); });
}

CpuKernels choose_untuned(Isa isa) {
  CpuKernels k;
  choose_embed(k, isa);
  k.rms_norm = choose<RmsNormArgs>(k, std::string(kRmsNorm.name()), kRmsNorm, isa,
                                   [](ProblemMemory& m) { return rms_norm_problem(m, kRows); });
  choose_quantize(k, isa);
  choose_matmuls(k, isa);
  k.add =
      choose<AddArgs>(k, std::string(kAdd.name()), kAdd, isa, [](ProblemMemory& m) { return add_problem(m, kRows); });
  k.silu_mul = choose<SiluMulArgs>(k, std::string(kSiluMul.name()), kSiluMul, isa,
                                   [](ProblemMemory& m) { return silu_mul_problem(m, kRows); });
  k.gather_rows = choose<GatherRowsArgs>(k, std::string(kGatherRows.name()), kGatherRows, isa,
                                         [](ProblemMemory& m) { return gather_rows_problem(m, kRows); });
  k.rope_table = choose<RopeTableArgs>(k, std::string(kRopeTable.name()), kRopeTable, isa,
                                       [](ProblemMemory& m) { return rope_table_problem(m, kRows); });
  k.rope = choose<RopeArgs>(
      k, std::string(kRope.name()), kRope, isa,
      [](ProblemMemory& m) { return rope_problem(m, kRows, RopeLayout::kHalfSplit); },
      [](ProblemMemory& m) { return rope_problem(m, kRows, RopeLayout::kInterleaved); });
  k.kv_write = choose<KvWriteArgs>(
      k, std::string(kKvWrite.name()), kKvWrite, isa,
      [](ProblemMemory& m) { return kv_write_problem(m, kRows, DType::kF32); },
      [](ProblemMemory& m) { return kv_write_problem(m, kRows, DType::kF16); },
      [](ProblemMemory& m) { return kv_write_problem(m, kRows, DType::kBF16); },
      [](ProblemMemory& m) { return kv_write_problem(m, kRows, DType::kI8); });
  for (const DType dtype : kKvDTypes) k.attention[static_cast<size_t>(dtype)] = choose_attention(k, isa, dtype);
  return k;
}

/// The known answers are asked for once in a process: they are the same for each model that it loads.
const CpuKernels& untuned_kernels(Isa isa) {
  static std::mutex mutex;
  static std::map<Isa, CpuKernels> chosen;
  const std::lock_guard lock(mutex);
  const auto found = chosen.find(isa);
  return found != chosen.end() ? found->second : chosen.emplace(isa, choose_untuned(isa)).first->second;
}

}  // namespace

CpuKernels choose_cpu_kernels(Isa isa, const CpuTuning& tuning) {
  CpuKernels kernels = untuned_kernels(isa);
  choose_tuned_matmuls(kernels, isa, tuning);
  return kernels;
}

}  // namespace headrace
