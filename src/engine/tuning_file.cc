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

template <class Values, class Name>
auto find_named(const Values& values, const std::string& wanted, const Name& name) {
  const auto found = std::ranges::find_if(values, [&](const auto& value) { return name(value) == wanted; });
  if (found == std::end(values)) throw Error(ErrorCode::kCorrupt, cat("unknown name ", wanted));
  return *found;
}

CpuTuning parse_tuning(const nlohmann::json& json) {
  CpuTuning tuning;
  for (const nlohmann::json& row : json.at("matmul")) {
    const auto text = [&](const char* key) { return row.at(key).get<std::string>(); };
    std::vector<DType> dtypes;
    for (const BlockFormat* format : all_formats()) dtypes.push_back(format->dtype);
    std::array<RowClass, kNumRowClasses> classes{};
    for (size_t i = 0; i < classes.size(); ++i) classes[i] = static_cast<RowClass>(i);
    const DType dtype = find_named(dtypes, text("type"), [](DType d) { return std::string(dtype_name(d)); });
    const WeightLayout layout = find_named(kAllWeightLayouts, text("layout"),
                                           [](WeightLayout l) { return std::string(weight_layout_name(l)); });
    const RowClass rows = find_named(classes, text("rows"), [](RowClass r) { return std::string(row_class_name(r)); });
    const Isa isa = find_named(kAllIsas, text("isa"), [](Isa i) { return std::string(isa_name(i)); });
    tuning[{dtype, layout, rows}] = {.isa = isa, .grain = std::clamp(row.at("grain").get<int32_t>(), 1, 1024)};
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
