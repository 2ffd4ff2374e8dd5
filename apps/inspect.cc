// headrace inspect: what a model is and how it would run here.
#include <cstdio>
#include <nlohmann/json.hpp>

#include "api/engine_options.h"
#include "apps/commands.h"
#include "apps/load_flags.h"
#include "apps/model_report.h"
#include "base/options_command_line.h"

namespace headrace {

int command_inspect(std::span<const std::string> arguments) {
  std::string model;
  bool as_json = false;
  LoadOptions load;
  const CommandLine command(
      "headrace inspect",
      "Loads a model and says what it is and how it would run here: architecture, shapes, types, memory, KV cache, "
      "kernels and recipes, tokenizer, chat template.",
      {{.name = "MODEL", .target = &model, .help = kModelHelp}},
      {{"Output", {{.name = "json", .target = &as_json, .help = "as JSON"}}}, {"Loading", load_flags(load)}});
  if (command.parse(arguments) == CommandLine::Outcome::kHelp) {
    std::fputs(command.help().c_str(), stdout);
    return 0;
  }
  const ModelFiles files = open_model(model);
  const EngineConfig config = engine_config(load);
  auto progress = show_loading(model, load);
  const Engine engine(files, config, load.on_progress);
  progress.reset();
  const nlohmann::ordered_json report = model_report(files, engine, config);
  const std::string text = as_json ? report.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n"
                                   : report_text(report);
  std::fputs(text.c_str(), stdout);
  return 0;
}

}  // namespace headrace
