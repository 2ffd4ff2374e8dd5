// headrace rank: a process over which `run` and `serve` divide the layers of a model.
#include <cstdio>

#include "apps/commands.h"
#include "base/error.h"
#include "base/options_command_line.h"
#include "cluster/rank_orders.h"
#include "cluster/rank_process.h"
#include "cluster/rank_worker.h"

namespace headrace {
namespace {

/// Far above what divides the heads of any model.
constexpr int32_t kMostRanks = 1024;

}  // namespace

int command_rank(std::span<const std::string> arguments) {
  RankPlace place{.rank = 0, .ranks = 0};
  const CommandLine command(
      "headrace rank",
      "Holds part of each layer of a model, beside the process that serves it. It is started by headrace run and "
      "headrace serve with --tensor-parallel-size, and ends with them.",
      {},
      {{"Place",
        {{.name = "rank",
          .target = &place.rank,
          .range = {.min = 1, .max = kMostRanks - 1},
          .value_name = "N",
          .default_text = "none",
          .help = "number of this process; 0 is the one that started it"},
         {.name = "ranks",
          .target = &place.ranks,
          .range = {.min = 2, .max = kMostRanks},
          .value_name = "N",
          .default_text = "none",
          .help = "how many there are"}}}});
  if (command.parse(arguments) == CommandLine::Outcome::kHelp) {
    std::fputs(command.help().c_str(), stdout);
    return 0;
  }
  cluster::RankDescriptors descriptors = cluster::inherited_rank_descriptors();
  if (place.rank < 1 || place.rank >= place.ranks) {
    throw Error(ErrorCode::kInvalidArgument, cat("--rank ", place.rank, " --ranks ", place.ranks));
  }
  cluster::RankRing ring = cluster::open_rank_ring(place, std::move(descriptors), cluster::kRankSeconds);
  const Error end = cluster::run_rank(ring);
  // What rank 0 does not know by itself.
  if (ring.fault() && ring.fault()->code() != ErrorCode::kUnavailable) throw end;
  return ring.fault() ? 0 : 1;
}

}  // namespace headrace
