// headrace tune: measures the bit-equal candidates for a model's products and remembers the fastest.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "api/engine_options.h"
#include "apps/commands.h"
#include "apps/load_flags.h"
#include "backend/cpu/tuner.h"
#include "base/error.h"
#include "base/options_command_line.h"
#include "engine/tuning_file.h"
#include "model/product_recipe.h"

namespace headrace {
namespace {

/// The matrices that the model multiplies by, by type and layout.
std::vector<TunedShapes> shapes_of(const ModelFiles& files, const ArchSpec& spec, Numerics numerics) {
  std::vector<TunedShapes> kinds;
  for (const TensorSpec& tensor : spec.tensors) {
    const TensorView view = find_spec_tensor(files, tensor);
    const MatmulRecipe* recipe = product_recipe(spec, tensor, numerics, view.dtype);
    if (recipe == nullptr) continue;
    auto kind = std::ranges::find_if(
        kinds, [&](const TunedShapes& k) { return k.dtype == view.dtype && k.layout == recipe->layout; });
    if (kind == kinds.end()) {
      kind = kinds.insert(kinds.end(), {.dtype = view.dtype, .layout = recipe->layout, .sizes = {}});
    }
    const TunedShapes::Size size{.n = view.shape[0], .k = view.shape[1]};
    if (std::ranges::find(kind->sizes, size) == kind->sizes.end()) kind->sizes.push_back(size);
  }
  return kinds;
}

void print_row(const TuneResult& r) {
  const std::string how = r.adopted ? fmt::format("{}, ranges x {}", isa_name(r.best.isa), r.best.grain) : "as it is";
  fmt::print("| {} {} | {} | {:.3f} ms | {:.3f} ms | {} |\n", dtype_name(r.dtype), weight_layout_name(r.layout),
             row_class_name(r.rows), r.static_seconds * 1e3, r.best_seconds * 1e3, how);
  std::fflush(stdout);
}

}  // namespace

int command_tune(std::span<const std::string> arguments) {
  std::string model;
  LoadOptions load;
  std::vector<Option> flags;
  for (const Option& option : load_flags(load)) {
    if (option.name == "isa" || option.name == "numerics" || option.name == "threads") flags.push_back(option);
  }
  const CommandLine command(
      "headrace tune",
      "Measures, for each weight type of the model and number of rows, the kernels and splits over "
      "threads that give the same bits, and remembers the faster ones for this processor, build and "
      "number of threads (in $HEADRACE_CACHE, else ~/.cache/headrace). Results never change. Let "
      "nothing else run meanwhile.",
      {{.name = "MODEL", .target = &model, .help = kModelHelp}}, {{"How", flags}});
  if (command.parse(arguments) == CommandLine::Outcome::kHelp) {
    std::fputs(command.help().c_str(), stdout);
    return 0;
  }
  const EngineConfig config = engine_config(load);
  const auto path = tuning_path(config.isa, config.threads);
  if (!path) throw Error(ErrorCode::kInvalidArgument, "no folder to remember in: set HEADRACE_CACHE");
  const ModelFiles files = open_model(model);
  const std::vector<TunedShapes> shapes = shapes_of(files, make_arch_spec(files), config.numerics);
  fmt::print("| weights | rows | as it is | fastest | from now on |\n|---|---:|---:|---:|---|\n");
  ComputePool pool(config.threads);
  const CpuTuning tuning = tune_matmuls(pool, config.isa, shapes, print_row);
  std::vector<std::pair<DType, WeightLayout>> tried;
  for (const TunedShapes& kind : shapes) tried.emplace_back(kind.dtype, kind.layout);
  save_tuning(*path, tuning, tried);
  fmt::print("\n{} choices remembered in {}\n", tuning.size(), path->string());
  return 0;
}

}  // namespace headrace
