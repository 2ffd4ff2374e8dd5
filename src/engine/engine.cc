#include "engine/engine.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "backend/cpu/cpu_backend.h"
#include "backend/fakedev/fakedev_backend.h"
#include "base/error.h"
#include "base/system_memory.h"
#include "engine/failing_executor.h"
#include "engine/local_executor.h"
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
  build_stages(files, config, progress);
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

CachePlan Engine::size_cache(const EngineConfig& config) const {
  const CacheWish wish{.max_model_len = config.max_model_len,
                       .chunk_tokens = config.max_step_tokens,
                       .num_seqs = config.serving ? 0 : config.max_num_seqs};
  if (config.serving && config.serving->kv_cache_bytes > 0) {
    return plan_cache(spec_, kv_dtype_, wish, config.serving->kv_cache_bytes);
  }
  // The rest is left for what else the machine does. Pages are taken only as the cache fills.
  constexpr double kFreeShare = 0.75;
  return plan_cache(spec_, kv_dtype_, wish,
                    static_cast<int64_t>(kFreeShare * static_cast<double>(available_memory_bytes())));
}

void Engine::build_stages(const ModelFiles& files, const EngineConfig& config, const LoadProgress& progress) {
  std::vector<StageUnits> cut = config.stages;
  if (cut.empty()) cut = {whole_model(spec_)};
  std::vector<StageWeights> weights;
  for (size_t i = 0; i < cut.size(); ++i) {
    const auto part = [&](double share) {
      if (progress) progress((static_cast<double>(i) + share) / static_cast<double>(cut.size()));
    };
    weights.emplace_back(*backend_, pool_, files, spec_, config.numerics, cut[i], part);
    packed_bytes_ += weights.back().packed_bytes();
    file_bytes_ += weights.back().file_bytes();
  }
  const CachePlan cache = size_cache(config);
  max_model_len_ = cache.max_model_len;
  kv_tokens_ = cache.tokens;
  std::vector<std::unique_ptr<Stage>> stages;
  for (size_t i = 0; i < cut.size(); ++i) {
    const bool last_layers = i + 2 == cut.size() && cut[i + 1].num_layers() == 0;
    const StageConfig stage_config{.kv_dtype = kv_dtype_,
                                   .group_blocks = cache.group_blocks,
                                   .max_tokens = config.max_step_tokens,
                                   .max_seq_len = max_model_len_,
                                   .gather_outputs = last_layers};
    stages.push_back(std::make_unique<Stage>(*backend_, spec_, std::move(weights[i]), stage_config, comm_));
    kv_bytes_ += stages.back()->kv_bytes();
  }
  executor_ = std::make_unique<LocalExecutor>(std::move(stages), config.steps_in_flight);
  build_scheduler(config, cache.group_blocks);
  if (config.fault_injection) {
    executor_ = std::make_unique<FailingExecutor>(std::move(executor_), config.fault_injection);
  }
}

void Engine::build_scheduler(const EngineConfig& config, const std::vector<int32_t>& group_blocks) {
  CacheConfig cache{
      .groups = {}, .block_tokens = kBlockTokens, .prefix_caching = config.serving && config.serving->prefix_caching};
  for (size_t i = 0; i < group_blocks.size(); ++i) {
    cache.groups.push_back({group_blocks[i], spec_.cache_groups[i].window});
  }
  cache_ = std::make_unique<CacheManager>(cache);
  SchedulerConfig scheduler = scheduler_config(config);
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

SchedulerConfig Engine::scheduler_config(const EngineConfig& config) const {
  SchedulerConfig scheduler{.num_groups = static_cast<int32_t>(spec_.cache_groups.size()),
                            .block_tokens = kBlockTokens,
                            .max_step_tokens = config.max_step_tokens,
                            .max_chunk_tokens = config.max_chunk_tokens,
                            .max_num_seqs = std::numeric_limits<int32_t>::max(),
                            .steps_in_flight = config.steps_in_flight};
  if (config.serving) {
    scheduler.max_num_seqs = config.serving->max_num_seqs;
    scheduler.find_step_tokens = config.serving->find_step_tokens;
    const int64_t row_bytes = std::max<int64_t>(spec_.vocab_size, 1) * static_cast<int64_t>(sizeof(float));
    scheduler.max_prompt_outputs = static_cast<int32_t>(std::max<int64_t>(kPromptLogitsBytes / row_bytes, 1));
  } else {
    // Whoever drives single steps asks for all that can be computed in each.
    scheduler.step_target_seconds = std::numeric_limits<double>::infinity();
  }
  scheduler.stage_costs.resize(std::max<size_t>(config.stages.size(), 1));
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
