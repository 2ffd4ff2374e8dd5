#include "cluster/rank_executor.h"

#include "cluster/rank_orders.h"
#include "step/plan_codec.h"

namespace headrace::cluster {

RankGroup start_ranks(int32_t ranks, RankTransport transport, const std::string& program) {
  std::vector<RankDescriptors> links = make_rank_links(ranks, transport);
  RankGroup group;
  for (int32_t rank = 1; rank < ranks; ++rank) {
    group.processes.push_back(
        std::make_unique<RankProcess>(program, RankPlace{rank, ranks}, links[static_cast<size_t>(rank)]));
  }
  group.ring = std::make_unique<RankRing>(open_rank_ring({0, ranks}, std::move(links[0]), kRankSeconds));
  return group;
}

RankExecutor::RankExecutor(const StageSite& site, RankGroup group, StageAssembly& made)
    : group_(std::move(group)), comm_(site.backend, *group_.ring) {
  RankRing& ring = *group_.ring;
  const EngineConfig& config = site.config;
  const RankPlace place = ring.place();
  check_ranks(site.spec, place.ranks);
  const ComputeRules compute{
      .numerics = config.numerics, .kv_dtype = site.kv_dtype, .max_step_tokens = config.max_step_tokens};
  try {
    send_setup(ring, {.path = site.files.path(), .isa = config.isa, .threads = config.threads, .rules = compute});
    StageWeights weights(site.backend, site.pool, site.files, site.spec, config.numerics, whole_model(site.spec),
                         site.progress, nullptr, place);
    ring.limit(kRankLoadSeconds);
    RankBytes bytes{.packed = weights.packed_bytes(), .file = weights.file_bytes()};
    bytes += receive_reports(ring);
    made.packed_bytes = bytes.packed;
    made.file_bytes = bytes.file;
    // All ranks' weights are there, so what is free is the cache's: the ranks' parts of it are as large as one rank's.
    made.cache = size_cache(site);
    const StageRules rules{
        .group_blocks = made.cache.group_blocks, .max_seq_len = made.cache.max_model_len, .gather_outputs = false};
    send_stage_rules(ring, rules);
    std::vector<std::unique_ptr<Stage>> stages;
    stages.push_back(
        std::make_unique<Stage>(site.backend, site.spec, std::move(weights), stage_config(compute, rules), comm_));
    made.kv_bytes = stages.front()->kv_bytes() * place.ranks;
    static_cast<void>(receive_reports(ring));
    ring.limit(kRankSeconds);
    local_ = std::make_unique<LocalExecutor>(std::move(stages), config.steps_in_flight, step_timeline());
  } catch (const Error& error) {
    throw explained(error);
  }
}

RankExecutor::~RankExecutor() = default;

void RankExecutor::submit(StepPlan plan) {
  encode_plan(plan, orders_.emplace_back());
  local_->submit(std::move(plan));
}

Result<std::monostate> RankExecutor::receive(StepResult& result) {
  // Not earlier: what a rank says within a step must not be followed by the next plan.
  group_.ring->give_order(orders_.front());
  orders_.pop_front();
  Result<std::monostate> received = local_->receive(result);
  if (!group_.ring->fault()) return received;
  return explained(*group_.ring->fault());
}

Error RankExecutor::explained(const Error& error) {
  if (!group_.ring->fault()) return error;
  std::string ends;
  for (size_t i = 0; i < group_.processes.size(); ++i) {
    const std::string end = group_.processes[i]->end();
    if (!end.empty()) ends += cat(ends.empty() ? " (" : ", ", "rank ", i + 1, ": ", end);
  }
  if (!ends.empty()) ends += ")";
  return {error.code(), error.message() + ends + "; start the program again"};
}

StageAssembly assemble_ranks(const StageSite& site, RankGroup group) {
  StageAssembly made{.executor = nullptr, .cache = {}, .num_stages = 1, .steps_in_flight = site.config.steps_in_flight};
  made.executor = std::make_unique<RankExecutor>(site, std::move(group), made);
  return made;
}

}  // namespace headrace::cluster
