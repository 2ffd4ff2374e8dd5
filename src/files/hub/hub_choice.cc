#include "files/hub/hub_choice.h"

#include <algorithm>
#include <string_view>

#include "base/ascii_text.h"
#include "base/error.h"
#include "base/options_nearest.h"
#include "files/gguf_split.h"
#include "files/name_list.h"

namespace headrace {
namespace {

constexpr std::string_view kIndex = "model.safetensors.index.json";
constexpr std::string_view kUsualWeights = "model.safetensors";
constexpr std::string_view kDefaultQuantization = "Q4_K_M";
constexpr size_t kMaxListed = 20;

std::string_view base_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

/// The language models among GGUF files: image projectors and importance matrices lie beside them.
std::vector<std::string> gguf_models(std::span<const std::string> listing) {
  std::vector<std::string> out;
  for (const std::string& path : listing) {
    const std::string name = ascii_lower(base_name(path));
    const bool is_other = name.find("mmproj") != name.npos || name.starts_with("imatrix");
    if (path.ends_with(".gguf") && !is_other && !is_later_split(path)) out.push_back(path);
  }
  return out;
}

/// Those whose name has `label` as a word of its own: "Q4_K" is not in "m-Q4_K_M.gguf".
std::vector<std::string> with_label(const std::vector<std::string>& ggufs, std::string_view label) {
  const std::string wanted = ascii_lower(label);
  const auto is_edge = [](std::string_view text, size_t at) {
    return at >= text.size() || (std::isalnum(static_cast<unsigned char>(text[at])) == 0 && text[at] != '_');
  };
  std::vector<std::string> out;
  for (const std::string& path : ggufs) {
    const std::string name = ascii_lower(base_name(path));
    for (size_t at = name.find(wanted); at != name.npos; at = name.find(wanted, at + 1)) {
      if ((at == 0 || is_edge(name, at - 1)) && is_edge(name, at + wanted.size())) {
        out.push_back(path);
        break;
      }
    }
  }
  return out;
}

std::string list_text(const std::vector<std::string>& names) { return name_list(names, kMaxListed); }

HubChoice gguf_choice(const HubName& name, std::span<const std::string> listing, const std::string& path) {
  HubChoice choice{.files = split_files(path), .index = {}, .gguf = path};
  for (const std::string& part : choice.files) {
    if (!std::binary_search(listing.begin(), listing.end(), part)) {
      throw LoadError(name.argument, cat(path, ": the repository lacks its part ", part), ErrorCode::kNotFound);
    }
  }
  return choice;
}

HubChoice named_choice(const HubName& name, std::span<const std::string> listing) {
  const bool is_there = std::binary_search(listing.begin(), listing.end(), name.file);
  if (is_there && name.file.ends_with(".gguf")) {
    if (is_later_split(name.file)) {
      throw LoadError(name.argument, "is a later part of a split model; give the one that ends with -00001-of-...",
                      ErrorCode::kInvalidArgument);
    }
    return gguf_choice(name, listing, name.file);
  }
  if (is_there) {
    throw LoadError(name.argument, "only a .gguf file can be named; leave :FILE out for config.json and .safetensors",
                    ErrorCode::kInvalidArgument);
  }
  const std::vector<std::string> ggufs = gguf_models(listing);
  const std::vector<std::string> labelled = with_label(ggufs, name.file);
  if (labelled.size() == 1) return gguf_choice(name, listing, labelled[0]);
  if (!labelled.empty()) {
    throw LoadError(name.argument, cat("is the name of several files; give one of ", list_text(labelled)),
                    ErrorCode::kInvalidArgument);
  }
  const std::vector<std::string_view> names(listing.begin(), listing.end());
  const std::string_view near = nearest_name(name.file, names);
  throw LoadError(name.argument,
                  cat("has no file ", name.file, near.empty() ? "" : cat("; did you mean ", near, "?"),
                      ggufs.empty() ? "" : cat("; there are ", list_text(ggufs))),
                  ErrorCode::kNotFound);
}

/// What is read beside the weights, and the tokenizer's other files, which other programs want.
bool is_side_file(std::string_view path) {
  if (path == "config.json" || path == "generation_config.json" || path == "chat_template.jinja") return true;
  if (path.starts_with("additional_chat_templates/")) return path.ends_with(".jinja");
  return path.starts_with("tokenizer") && path.find('/') == path.npos;
}

HubChoice safetensors_choice(const HubName& name, std::span<const std::string> listing,
                             const std::vector<std::string>& weights) {
  HubChoice choice;
  std::copy_if(listing.begin(), listing.end(), std::back_inserter(choice.files), is_side_file);
  if (std::binary_search(listing.begin(), listing.end(), kIndex)) {
    choice.index = kIndex;
    choice.files.push_back(choice.index);
    return choice;
  }
  const bool is_usual = std::find(weights.begin(), weights.end(), kUsualWeights) != weights.end();
  if (!is_usual && weights.size() > 1) {
    throw LoadError(name.argument, cat("has several .safetensors (", list_text(weights), ") but no ", kIndex),
                    ErrorCode::kUnsupported);
  }
  choice.files.push_back(is_usual ? std::string(kUsualWeights) : weights[0]);
  return choice;
}

}  // namespace

HubChoice choose_files(const HubName& name, std::span<const std::string> listing) {
  if (!name.file.empty()) return named_choice(name, listing);
  std::vector<std::string> weights;
  for (const std::string& path : listing) {
    if (path.ends_with(".safetensors") && path.find('/') == path.npos) weights.push_back(path);
  }
  const bool has_config = std::binary_search(listing.begin(), listing.end(), std::string("config.json"));
  if (has_config && !weights.empty()) return safetensors_choice(name, listing, weights);
  const std::vector<std::string> ggufs = gguf_models(listing);
  if (ggufs.size() == 1) return gguf_choice(name, listing, ggufs[0]);
  if (const auto usual = with_label(ggufs, kDefaultQuantization); usual.size() == 1) {
    HubChoice choice = gguf_choice(name, listing, usual[0]);
    choice.is_default = true;
    return choice;
  }
  if (!ggufs.empty()) {
    throw LoadError(name.argument,
                    cat("holds several models; append ':' and the name or quantization of one: ", list_text(ggufs)),
                    ErrorCode::kInvalidArgument);
  }
  throw LoadError(name.argument,
                  weights.empty() ? "holds no .safetensors and no .gguf; look for a repository that does"
                                  : "holds .safetensors but no config.json; look for a repository that has both",
                  ErrorCode::kUnsupported);
}

}  // namespace headrace
