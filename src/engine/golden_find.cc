#include "engine/golden_find.h"

#include <algorithm>
#include <filesystem>

#include "base/cat.h"
#include "base/error.h"
#include "engine/golden_texts.h"

namespace headrace {
namespace {

namespace fs = std::filesystem;

/// Fixtures lie at most two folders deep; a loop of symbolic links would never end.
constexpr int kMaxDepth = 6;

GoldenItem problem(const fs::path& path, std::string why) {
  return {
      .kind = GoldenKind::kNothing, .name = path.filename().string(), .path = path.string(), .problem = std::move(why)};
}

GoldenItem gguf_item(const fs::path& path) {
  const std::string stem = path.parent_path() / path.stem();
  GoldenItem item{.kind = GoldenKind::kModel,
                  .name = path.filename().string(),
                  .path = path.string(),
                  .safetensors = stem + ".golden.safetensors",
                  .json = stem + ".golden.json"};
  if (!fs::exists(path)) return problem(path, "no such file");
  for (const std::string& file : {item.safetensors, item.json}) {
    if (!fs::exists(file)) return problem(path, cat("no golden beside it: ", fs::path(file).filename().string()));
  }
  return item;
}

GoldenItem golden_json_item(const fs::path& folder, const std::string& name) {
  GoldenItem item{.kind = GoldenKind::kOtherModel,
                  .name = name,
                  .path = folder.string(),
                  .safetensors = folder / "golden.safetensors",
                  .json = folder / "golden.json"};
  if (fs::exists(folder / "adapter_config.json")) return problem(folder, "adapters are not supported");
  if (!fs::exists(item.safetensors)) {
    if (!fs::exists(folder / "tokenizer.json")) return problem(folder, "golden.json without golden.safetensors");
    item.kind = GoldenKind::kTokenizerJson;
  } else if (is_golden_texts(item.json)) {
    item.kind = GoldenKind::kTexts;
  } else if (fs::exists(folder / "config.json")) {
    item.kind = GoldenKind::kModel;
  }
  return item;
}

/// Adds what the folder is, or what lies in it.
void find_in_folder(const fs::path& folder, int depth, std::vector<GoldenItem>& items) {
  const std::string name = (folder.has_filename() ? folder : folder.parent_path()).filename().string();
  const auto whole = [&](GoldenKind kind) { items.push_back({.kind = kind, .name = name, .path = folder.string()}); };
  if (fs::exists(folder / "golden.json")) return items.push_back(golden_json_item(folder, name));
  if (fs::exists(folder / "quant.json")) return whole(GoldenKind::kQuant);

  std::vector<fs::path> entries;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) entries.push_back(entry.path());
  std::ranges::sort(entries);
  const auto has = [&](std::string_view suffix) {
    return std::ranges::any_of(entries, [&](const fs::path& p) { return p.extension() == suffix; });
  };
  if (has(".inp")) return whole(GoldenKind::kTokenizers);
  if (has(".jinja") && !fs::exists(folder / "config.json")) return whole(GoldenKind::kTemplates);
  if (fs::exists(folder / "config.json")) return items.push_back(problem(folder, "a model without golden.json"));

  for (const fs::path& entry : entries) {
    if (entry.extension() == ".gguf") {
      items.push_back(gguf_item(entry));
    } else if (std::error_code unreadable; fs::is_directory(entry, unreadable) && depth < kMaxDepth) {
      find_in_folder(entry, depth + 1, items);
    }
  }
}

}  // namespace

std::vector<GoldenItem> find_goldens(const std::string& path) {
  std::vector<GoldenItem> items;
  try {
    if (fs::is_directory(path)) {
      find_in_folder(path, 0, items);
    } else if (fs::path(path).extension() == ".gguf") {
      items.push_back(gguf_item(path));
    } else {
      items.push_back(problem(path, fs::exists(path) ? "neither a folder nor a .gguf file" : "no such file or folder"));
    }
  } catch (const std::exception& error) {
    items.push_back(problem(path, printable(error.what(), 400)));
  }
  if (items.empty()) items.push_back(problem(path, "no golden in it"));
  return items;
}

}  // namespace headrace
