#include "apps/commands.h"

#include "base/cat.h"

namespace headrace {
namespace {

constexpr Command kCommands[] = {
    {"run", "answer a prompt, or chat", command_run},
    {"serve", "serve a model to many clients, by the OpenAI API", command_serve},
    {"worker", "hold part of a model for a server on another machine", command_worker},
    {"rank", "hold part of each layer; run and serve with --tensor-parallel-size start it", command_rank},
    {"batch", "answer a file of requests in OpenAI's batch format", command_batch},
    {"inspect", "say what a model is and how it would run here", command_inspect},
    {"bench", "measure prompt and generation speed", command_bench},
    {"tune", "find the fastest kernels for a model on this machine, and remember them", command_tune},
    {"plan", "place a model on machines, and predict what that gives", command_plan},
    {"simulate", "run a load on a simulated pipeline, and report what clients would see", command_simulate},
    {"eval", "compare a model with results of an independent implementation", command_eval},
};

}  // namespace

std::span<const Command> all_commands() noexcept { return kCommands; }

std::string version_text() { return cat("headrace ", HR_VERSION, " (", HR_BUILD, ", ", HR_COMPILER, ")"); }

}  // namespace headrace
