#include "engine/engine.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "backend/cpu/cpu_backend.h"
#include "backend/fakedev/fakedev_backend.h"
#include "base/error.h"
#include "engine/failing_executor.h"
#include "engine/step_calibration.h"

namespace headrace {
namespace {

/// Address space that the test device reserves: ample for models that tests run on it.
constexpr int64_t kFakedevBytes = int64_t{8} << 30;

/// Of the logits that a step returns for the log-probabilities of prompts; those of sampled rows come on top, one row
/// of the vocabulary for each sequence.
constexpr int64_t kPromptLogitsBytes = int64_t{64} << 20;

}  // namespace

std::optional<DType> parse_kv_dtype(std::string_view name) noexcept {
  for (const DType dtype : kKvDTypes) {
    if (kv_dtype_name(dtype) == name) return dtype;
  }
  return std::nullopt;
}

std::string_view kv_dtype_name(DType dtype) noexcept {
  switch (dtype) {
    case DType::kF32:
      return "f32";
    case DType::kBF16:
      return "bf16";
    case DType::kI8:
      return "int8";
    default:
      return "f16";
  }
}

DType choose_kv_dtype(Numerics numerics, const ModelFiles& files, const ArchSpec& spec) {
  const auto is_f32 = [&](const TensorSpec& tensor) { return find_spec_tensor(files, tensor).dtype == DType::kF32; };
  const bool f32_weights = std::all_of(spec.tensors.begin(), spec.tensors.end(), is_f32);
  return numerics == Numerics::kExact || f32_weights ? DType::kF32 : DType::kF16;
}

Engine::Engine(const ModelFiles& files, const EngineConfig& config, const LoadProgress& progress)
    : spec_(make_arch_spec(files)),
      kv_dtype_(config.kv_dtype ? *config.kv_dtype : choose_kv_dtype(config.numerics, files, spec_)),
      pool_(config.threads) {
  build_backend(config);
  const StageSite site{.files = files,
                       .config = config,
                       .spec = spec_,
                       .kv_dtype = kv_dtype_,
                       .backend = *backend_,
                       .pool = pool_,
                       .comm = comm_,
                       .progress = progress};
  StageAssembly stages = config.assemble ? config.assemble(site) : assemble_local(site);
  executor_ = std::move(stages.executor);
  max_model_len_ = stages.cache.max_model_len;
  kv_tokens_ = stages.cache.tokens;
  packed_bytes_ = stages.packed_bytes;
  file_bytes_ = stages.file_bytes;
  kv_bytes_ = stages.kv_bytes;
  build_scheduler(config, stages);
  if (config.fault_injection) {
    executor_ = std::make_unique<FailingExecutor>(std::move(executor_), config.fault_injection);
  }
}

Engine::~Engine() = default;

void Engine::build_backend(const EngineConfig& config) {
  switch (config.backend) {
    case BackendKind::kCpu:
      backend_ = make_cpu_backend(pool_, config.isa, config.tuning);
      break;
    case BackendKind::kFakedev:
      backend_ = make_fakedev_backend(kFakedevBytes);
      break;
  }
}

void Engine::build_scheduler(const EngineConfig& config, const StageAssembly& stages) {
  CacheConfig cache{
      .groups = {}, .block_tokens = kBlockTokens, .prefix_caching = config.serving && config.serving->prefix_caching};
  for (size_t i = 0; i < stages.cache.group_blocks.size(); ++i) {
    cache.groups.push_back({stages.cache.group_blocks[i], spec_.cache_groups[i].window});
  }
  cache_ = std::make_unique<CacheManager>(cache);
  SchedulerConfig scheduler = scheduler_config(config, stages);
  if (scheduler.find_step_tokens) {
    scheduler.stage_costs = calibrate_steps({.executor = *executor_,
                                             .cache = cache,
                                             .scheduler = scheduler,
                                             .clock = clock_,
                                             .max_model_len = max_model_len_});
    epoch_ = EpochId{raw(epoch_) + 1};
  }
  scheduler_ = std::make_unique<Scheduler>(std::move(scheduler), *cache_, clock_);
  if (epoch_ != EpochId{}) scheduler_->restart(epoch_);
}

SchedulerConfig Engine::scheduler_config(const EngineConfig& config, const StageAssembly& stages) const {
  SchedulerConfig scheduler{.num_groups = static_cast<int32_t>(spec_.cache_groups.size()),
                            .block_tokens = kBlockTokens,
                            .max_step_tokens = config.max_step_tokens,
                            .max_chunk_tokens = config.max_chunk_tokens,
                            .max_num_seqs = std::numeric_limits<int32_t>::max(),
                            .steps_in_flight = stages.steps_in_flight};
  if (config.serving) {
    scheduler.max_num_seqs = config.serving->max_num_seqs;
    scheduler.find_step_tokens = config.serving->find_step_tokens;
    const int64_t row_bytes = std::max<int64_t>(spec_.vocab_size, 1) * static_cast<int64_t>(sizeof(float));
    scheduler.max_prompt_outputs = static_cast<int32_t>(std::max<int64_t>(kPromptLogitsBytes / row_bytes, 1));
  } else {
    // Whoever drives single steps asks for all that can be computed in each.
    scheduler.step_target_seconds = std::numeric_limits<double>::infinity();
  }
  scheduler.stage_costs.resize(stages.num_stages);
  return scheduler;
}

void Engine::restart() {
  epoch_ = EpochId{raw(epoch_) + 1};
  scheduler_->restart(epoch_);
}

void Engine::check_prompt(std::span<const TokenId> tokens) const {
  if (tokens.empty()) throw ParameterError("prompt", "the prompt is empty: at least one token is needed");
  for (const TokenId token : tokens) {
    if (token < 0 || token >= spec_.vocab_size) {
      throw ParameterError("prompt", cat("token ", token, " is not in the vocabulary of ", spec_.vocab_size));
    }
  }
}

std::optional<SequenceId> Engine::start(std::vector<TokenId> tokens, int32_t max_len, int32_t output_from) {
  if (max_len > max_model_len_ || static_cast<size_t>(max_len) < tokens.size()) {
    throw Error(ErrorCode::kInvalidArgument, cat("the prompt has ", tokens.size(), " tokens and may grow to ", max_len,
                                                 "; a sequence has at most ", max_model_len_));
  }
  check_prompt(tokens);
  const SequenceId id{next_sequence_++};
  SequenceSpec spec{.tokens = std::move(tokens), .max_len = max_len, .output_from = output_from};
  if (scheduler_->add(id, std::move(spec)) != Admit::kYes) return std::nullopt;
  return id;
}

const StepResult* Engine::step() {
  std::optional<StepPlan> plan = scheduler_->compose();
  if (!plan) return nullptr;
  executor_->submit(std::move(*plan));
  if (auto received = executor_->receive(result_); !received) throw received.error();
  scheduler_->complete(result_);
  return &result_;
}

}  // namespace headrace
