#pragma once

#include <optional>
#include <string>

#include "engine/engine.h"

namespace headrace {

/// How a golden is tried.
struct GoldenSetup {
  Numerics numerics = Numerics::kPortable;
  Isa isa = Isa::kRef;
  int threads = 1;
  int32_t chunk_tokens = 0;         ///< prompt tokens in one step; 0: all that fit
  int32_t stages = 1;               ///< parts that the model is cut into, at most one a layer
  bool together = false;            ///< all prompts in the same steps
  std::optional<DType> kv_dtype{};  ///< none: what the engine chooses
  BackendKind backend = BackendKind::kCpu;
};
/// "portable avx512 threads=2 chunk=7"
[[nodiscard]] std::string setup_text(const GoldenSetup& setup);

enum class Verdict : uint8_t { kOk, kFailed, kNotTried };
[[nodiscard]] std::string_view verdict_name(Verdict verdict) noexcept;  ///< "OK", "FAILED", "NOT TRIED"

/// The outcome of one golden in one setup.
struct GoldenOutcome {
  std::string name;
  std::string setup = {};                 ///< empty where numbers are not computed (tokenizers, templates)
  std::optional<double> difference = {};  ///< largest one, over the standard deviation of the logits
  std::string matches = {};               ///< "96/96 greedy"
  std::string detail = {};                ///< further measures
  Verdict verdict = Verdict::kOk;
  std::string reason = {};  ///< of a failure, or why it was not tried
  /// Of all logits computed: setups with the same numerics and KV cache must give the same bits.
  std::optional<uint64_t> logits_hash = {};
};

/// The outcome for an error that ended the trial: what this build does not support, does not find or has no memory for
/// was not tried, anything else failed.
[[nodiscard]] GoldenOutcome outcome_of_error(std::string name, std::string setup, const std::exception& error);

}  // namespace headrace
