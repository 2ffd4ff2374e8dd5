#include "arch/registry.h"

#include <algorithm>
#include <unordered_set>

#include "base/error.h"

namespace headrace {
namespace {

bool contains(const std::vector<std::string_view>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::string known_names(ModelFormat format) {
  std::vector<std::string_view> names;
  for (const ArchEntry* arch : all_archs()) {
    for (const std::string_view name : format == ModelFormat::kGguf ? arch->gguf : arch->hf) {
      if (!contains(names, name)) names.push_back(name);
    }
  }
  std::sort(names.begin(), names.end());
  std::string out;
  for (const std::string_view name : names) out += cat(out.empty() ? "" : ", ", name);
  return out;
}

const ArchEntry* find_gguf_arch(const Metadata& md, std::string_view name) {
  const ArchEntry* unclaimed = nullptr;
  for (const ArchEntry* arch : all_archs()) {
    if (!contains(arch->gguf, name)) continue;
    if (arch->claims_gguf == nullptr) {
      unclaimed = arch;
    } else if (arch->claims_gguf(md)) {
      return arch;
    }
  }
  return unclaimed;
}

const ArchEntry& find_arch(const ModelFiles& files) {
  const Metadata& md = files.metadata();
  const bool gguf = files.format() == ModelFormat::kGguf;
  const std::string_view key = gguf ? "general.architecture" : "architectures";
  std::string name;
  const ArchEntry* found = nullptr;
  if (gguf) {
    name = md.require_string(key);
    found = find_gguf_arch(md, name);
  } else {
    const std::span<const std::string> names = md.require_strings(key);
    if (names.empty()) md.fail(key, "is empty, expected the name of an architecture");
    name = names[0];
    for (const ArchEntry* arch : all_archs()) {
      if (contains(arch->hf, name)) found = arch;
    }
  }
  if (found == nullptr) {
    throw LoadError(
        md.source(),
        cat(key, ": unknown architecture '", printable(name), "', expected one of ", known_names(files.format())),
        ErrorCode::kUnsupported);
  }
  return *found;
}

void refuse_quantised_checkpoint(const ModelFiles& files) {
  if (!files.has_quantization_config()) return;
  const std::string method = files.metadata().get_string("quantization_config.quant_method").value_or("unnamed");
  throw LoadError(files.metadata().source(),
                  cat("quantization_config: method '", printable(method),
                      "' is not supported, expected an unquantised checkpoint or a GGUF file"),
                  ErrorCode::kUnsupported);
}

/// Tensors that some converters write and no forward pass needs, or that are read elsewhere.
bool is_known_extra(std::string_view name, const ArchSpec& spec) {
  return name.ends_with("rotary_emb.inv_freq") || name == "rope_freqs.weight" ||
         (spec.tied_output && name == "lm_head.weight");
}

const std::string& file_name_of(const ModelFiles& files, const TensorSpec& tensor) {
  return files.format() == ModelFormat::kGguf ? tensor.name : tensor.hf_name;
}

void check_tensors(const ModelFiles& files, const ArchSpec& spec) {
  std::unordered_set<std::string_view> known;
  for (const TensorSpec& tensor : spec.tensors) {
    known.insert(file_name_of(files, tensor));
    (void)find_spec_tensor(files, tensor);
  }
  for (const NamedTensor& tensor : files.tensors()) {
    if (!known.contains(tensor.name) && !is_known_extra(tensor.name, spec)) {
      throw LoadError(files.path(),
                      cat(printable(tensor.name), ": not a tensor of architecture ", spec.name,
                          "; leaving it out would change the results"),
                      ErrorCode::kUnsupported);
    }
  }
}

}  // namespace

ArchSpec make_arch_spec(const ModelFiles& files) {
  const ArchEntry& arch = find_arch(files);
  refuse_quantised_checkpoint(files);
  ArchSpec spec = arch.make(files);
  check_tensors(files, spec);
  return spec;
}

TensorView find_spec_tensor(const ModelFiles& files, const TensorSpec& tensor) {
  const std::string& name = file_name_of(files, tensor);
  const TensorView* found = files.find(name);
  if (found == nullptr) throw LoadError(files.path(), cat(name, ": missing, expected ", shape_text(tensor.shape)));
  if (found->shape != tensor.shape) {
    throw LoadError(files.path(),
                    cat(name, ": shape ", shape_text(found->shape), ", expected ", shape_text(tensor.shape)));
  }
  return *found;
}

}  // namespace headrace
