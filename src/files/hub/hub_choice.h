#pragma once

#include <span>
#include <string>
#include <vector>

#include "files/hub/hub_name.h"

namespace headrace {

/// The files of a repository that make a model.
struct HubChoice {
  std::vector<std::string> files;
  /// The index whose shards are wanted too, one of `files`; empty where there is none.
  std::string index;
  /// The .gguf to open (the first of a split set); empty: the folder itself.
  std::string gguf;
  /// Whether it was chosen among several, which a person may want to know.
  bool is_default = false;
};

/// Chooses from the paths of a listing, which are sorted: the .gguf that name.file names, by path or by quantization;
/// else config.json with .safetensors and what belongs to them; else the only .gguf, or the only Q4_K_M.
/// Throws LoadError, which lists what could be given.
[[nodiscard]] HubChoice choose_files(const HubName& name, std::span<const std::string> listing);

}  // namespace headrace
