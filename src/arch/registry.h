#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "arch/arch_spec.h"
#include "files/model_files.h"

namespace headrace {

/// One architecture file. The build makes the registry from the HR_ARCH lines of arch/*.cc; two files that claim the
/// same Hugging Face name are a build error.
struct ArchEntry {
  std::string_view name;
  std::vector<std::string_view> hf;    ///< names in config.json's "architectures"
  std::vector<std::string_view> gguf;  ///< values of general.architecture
  ArchSpec (*make)(const ModelFiles& files);
  /// Where several files share a GGUF name: whether the metadata are this one's. nullptr: those that no other claims.
  bool (*claims_gguf)(const Metadata& metadata) = nullptr;
};

[[nodiscard]] std::span<const ArchEntry* const> all_archs() noexcept;

/// The spec of a model, checked against its tensors. Throws LoadError where the architecture or the quantisation is
/// unknown (naming those that are known), a field or tensor does not fit, or the files hold a tensor that the spec does
/// not know (a bias, say, that would silently be left out).
[[nodiscard]] ArchSpec make_arch_spec(const ModelFiles& files);

/// The tensor of the spec in the files, its shape checked; throws LoadError where it is missing or has another shape.
[[nodiscard]] TensorView find_spec_tensor(const ModelFiles& files, const TensorSpec& tensor);

}  // namespace headrace

/// Declares an architecture, on one line: HR_ARCH(qwen3, .hf = {"Qwen3ForCausalLM"}, .gguf = {"qwen3"}, .make =
/// arch_qwen3);
#define HR_ARCH(arch_name, ...)                         \
  extern const ::headrace::ArchEntry kArch_##arch_name; \
  const ::headrace::ArchEntry kArch_##arch_name { .name = #arch_name, __VA_ARGS__ }
