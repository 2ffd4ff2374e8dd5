#pragma once

#include <filesystem>
#include <optional>

#include "backend/cpu/tuning.h"

namespace headrace {

/// Where the tuning of this processor, build, highest instruction set and number of threads is kept, in the cache
/// folder; nullopt where there is none. What another processor or build has measured is never found.
[[nodiscard]] std::optional<std::filesystem::path> tuning_path(Isa isa, int threads);

/// What is kept there; empty where nothing is, or where the file makes no sense (which is logged: tuning changes no
/// result, so a run goes on without).
[[nodiscard]] CpuTuning load_tuning(const std::filesystem::path& path);
/// The same of tuning_path(); empty where there is no cache folder.
[[nodiscard]] CpuTuning load_tuning(Isa isa, int threads);

/// Adds to what is kept, choices of the same kind replaced: other types may have been tuned with another model.
/// `tried`: kinds that were measured; those without a choice in `tuning` lose theirs. Throws Error(kUnavailable).
void save_tuning(const std::filesystem::path& path, const CpuTuning& tuning,
                 const std::vector<std::pair<DType, WeightLayout>>& tried);

}  // namespace headrace
