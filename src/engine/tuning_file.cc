#include "engine/tuning_file.h"

#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/build_id.h"
#include "base/cache_folder.h"
#include "base/cat.h"
#include "base/error.h"
#include "base/log.h"
#include "files/json_file.h"

namespace headrace {
namespace {

/// What `find` makes of the text of a row's field.
template <class Find>
auto named(const nlohmann::json& row, const char* field, const Find& find) {
  const auto name = row.at(field).get<std::string>();
  const auto found = find(name);
  if (!found) throw Error(ErrorCode::kCorrupt, cat(field, ": unknown name ", name));
  return *found;
}

std::optional<DType> weight_type(std::string_view name) {
  const std::optional<DType> dtype = dtype_from_name(name);
  return dtype && find_format(*dtype) != nullptr ? dtype : std::nullopt;
}
std::optional<WeightLayout> parse_layout(std::string_view name) {
  const auto found = std::ranges::find(kAllWeightLayouts, name, weight_layout_name);
  return found != kAllWeightLayouts.end() ? std::optional(*found) : std::nullopt;
}
std::optional<RowClass> parse_row_class(std::string_view name) {
  for (int i = 0; i < kNumRowClasses; ++i) {
    if (row_class_name(static_cast<RowClass>(i)) == name) return static_cast<RowClass>(i);
  }
  return std::nullopt;
}

CpuTuning parse_tuning(const nlohmann::json& json) {
  CpuTuning tuning;
  for (const nlohmann::json& row : json.at("matmul")) {
    const DType dtype = named(row, "type", weight_type);
    const WeightLayout layout = named(row, "layout", parse_layout);
    const RowClass rows = named(row, "rows", parse_row_class);
    tuning[{dtype, layout, rows}] = {.isa = named(row, "isa", parse_isa),
                                     .grain = std::clamp(row.at("grain").get<int32_t>(), 1, 1024)};
  }
  return tuning;
}

}  // namespace

std::optional<std::filesystem::path> tuning_path(Isa isa, int threads) {
  const std::optional<std::filesystem::path> cache = cache_folder();
  if (!cache) return std::nullopt;
  const std::string machine = cat(cpu_model_name(), "|", build_id());
  const std::string key = cat(XXH3_64bits(machine.data(), machine.size()), "-", isa_name(isa), "-", threads);
  return *cache / "tuning" / (key + ".json");
}

CpuTuning load_tuning(const std::filesystem::path& path) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return {};
  try {
    return parse_tuning(load_json(path.string()));
  } catch (const std::exception& error) {
    log_warn("{}: not used: {}; remove it, or run headrace tune again", path.string(), error.what());
    return {};
  }
}

CpuTuning load_tuning(Isa isa, int threads) {
  const auto path = tuning_path(isa, threads);
  return path ? load_tuning(*path) : CpuTuning{};
}

void save_tuning(const std::filesystem::path& path, const CpuTuning& tuning,
                 const std::vector<std::pair<DType, WeightLayout>>& tried) {
  CpuTuning all = load_tuning(path);
  std::erase_if(all, [&](const auto& entry) {
    const auto& [dtype, layout, rows] = entry.first;
    return std::ranges::find(tried, std::pair(dtype, layout)) != tried.end();
  });
  for (const auto& [key, choice] : tuning) all[key] = choice;
  nlohmann::ordered_json json{{"processor", cpu_model_name()}, {"build", build_id()}};
  json["matmul"] = nlohmann::ordered_json::array();
  for (const auto& [key, choice] : all) {
    const auto& [dtype, layout, rows] = key;
    json["matmul"].push_back({{"type", dtype_name(dtype)},
                              {"layout", weight_layout_name(layout)},
                              {"rows", row_class_name(rows)},
                              {"isa", isa_name(choice.isa)},
                              {"grain", choice.grain}});
  }
  std::error_code error;
  std::filesystem::create_directories(path.parent_path(), error);
  // Written whole beside its place first: another process may be reading.
  const std::filesystem::path partial = cat(path.string(), ".", getpid());
  std::ofstream(partial) << json.dump(1) << '\n';
  std::filesystem::rename(partial, path, error);
  if (error) {
    throw Error(ErrorCode::kUnavailable,
                cat(path.string(), ": cannot be written: ", error.message(), "; set HEADRACE_CACHE"));
  }
}

}  // namespace headrace
