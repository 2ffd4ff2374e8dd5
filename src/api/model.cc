#include <algorithm>
#include <chrono>
#include <cmath>
#include <deque>
#include <optional>

#include "api/engine_options.h"
#include "api/event_queue.h"
#include "api/model_text.h"
#include "api/request_reader.h"
#include "cluster/cluster.h"
#include "cluster/rank_executor.h"
#include "engine/generator.h"
#include "engine/tuning_file.h"
#include "headrace/headrace.h"

namespace headrace {

EngineConfig engine_config(const LoadOptions& options) {
  const std::optional<Numerics> numerics = parse_numerics(options.numerics);
  if (!numerics) {
    throw Error(ErrorCode::kInvalidArgument,
                cat("numerics: '", printable(options.numerics), "' is not one of: portable, fastest, exact"));
  }
  const std::optional<DType> kv_dtype = parse_kv_dtype(options.kv_cache_dtype);
  if (!kv_dtype && options.kv_cache_dtype != "auto") {
    throw Error(ErrorCode::kInvalidArgument, cat("kv_cache_dtype: '", printable(options.kv_cache_dtype),
                                                 "' is not one of: auto, f32, f16, bf16, int8"));
  }
  if (options.threads < 0) throw Error(ErrorCode::kInvalidArgument, cat("threads: ", options.threads));
  EngineConfig config;
  config.isa = choose_isa(options.isa);
  config.numerics = *numerics;
  config.kv_dtype = kv_dtype;
  config.threads = options.threads > 0 ? options.threads : usable_cpus();
  config.max_model_len = options.max_model_len;
  if (options.max_num_batched_tokens > 0) config.max_step_tokens = options.max_num_batched_tokens;
  config.tuning = load_tuning(config.isa, config.threads);
  return config;
}

namespace {

/// A request of a caller that waits for it; cancelled if the caller leaves before its end, by an exception perhaps.
class Running {
 public:
  Running(Generator& generator, GenerationInput input)
      : generator_(generator), id_(generator.submit(std::move(input), events_.sink())) {}
  ~Running() {
    if (!ended_) generator_.cancel(id_);
    while (!ended_) ended_ = events_.pop().last;
  }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

  [[nodiscard]] bool ended() const noexcept { return ended_; }
  [[nodiscard]] std::optional<GenerationEvent> next(std::chrono::milliseconds limit) {
    std::optional<GenerationEvent> event = events_.pop_for(limit);
    ended_ = event && event->last;
    return event;
  }

 private:
  Generator& generator_;
  EventQueue events_;
  RequestId id_;
  bool ended_ = false;
};

/// Room for the tokens of a step whose number is to be found.
constexpr int32_t kMostFoundStepTokens = 1024;

EngineConfig serving_config(const LoadOptions& options) {
  EngineConfig config = engine_config(options);
  config.serving =
      ServingConfig{.kv_cache_bytes = options.kv_cache_memory_bytes, .prefix_caching = options.prefix_caching};
  if (options.max_num_seqs > 0) config.serving->max_num_seqs = options.max_num_seqs;
  if (options.max_num_batched_tokens == 0) {
    config.max_step_tokens = kMostFoundStepTokens;
    config.max_chunk_tokens = kMostFoundStepTokens;
    config.serving->find_step_tokens = true;
  }
  config.fault_injection = options.fault_injection;
  return config;
}

/// Options that cannot go together. Throws Error.
void check_ranks_wanted(const LoadOptions& options) {
  const int32_t ranks = options.tensor_parallel_size;
  if (ranks < 1) throw Error(ErrorCode::kInvalidArgument, cat("tensor_parallel_size: ", ranks, ", expected 1 or more"));
  if (ranks > 1 && options.cluster.is_used()) {
    throw Error(ErrorCode::kUnsupported,
                cat("a tensor-parallel size of ", ranks,
                    " together with workers: layers are divided over processes of one machine only; leave one of the "
                    "two out"));
  }
  if (ranks == 1 && options.tensor_parallel_transport != LoadOptions().tensor_parallel_transport) {
    throw Error(ErrorCode::kInvalidArgument,
                "a tensor-parallel transport is for a tensor-parallel size of 2 or more; give that, too, or leave the "
                "transport out");
  }
  if (ranks > 1 && options.tensor_parallel_program.empty()) {
    throw Error(ErrorCode::kInvalidArgument, "tensor_parallel_program: expected the path of the program headrace");
  }
}

StageAssembly assemble_ranks(const StageSite& site, const LoadOptions& options) {
  try {
    check_ranks(site.spec, options.tensor_parallel_size);
  } catch (const Error& error) {
    throw Error(error.code(), cat(error.message(), "; choose a tensor-parallel size that divides them"));
  }
  const auto transport = cluster::parse_rank_transport(options.tensor_parallel_transport);
  if (!transport) {
    throw Error(ErrorCode::kInvalidArgument, cat("tensor_parallel_transport: '",
                                                 printable(options.tensor_parallel_transport), "' is not shm or tcp"));
  }
  return cluster::assemble_ranks(
      site, cluster::start_ranks(options.tensor_parallel_size, *transport, options.tensor_parallel_program));
}

}  // namespace

class Model::Impl {
 public:
  Impl(const ModelFiles& files, const LoadOptions& options)
      : name_(files.name()),
        tokenizer_(tokenizer_of(files)),
        end_tokens_(end_tokens(files, tokenizer_)),
        defaults_(default_sampling(files)),
        chat_template_(chat_template_of(files, options)),
        chat_(chat_prompt(options.chat_template.empty() ? name_ : "chat template")),
        engine_(files, engine_config_for(options), options.on_progress),
        // A matrix may have more rows than there are tokens; those past the end are padding.
        vocab_size_(std::min(engine_.spec().vocab_size, tokenizer_.vocab_size())),
        reader_(name_, tokenizer_, vocab_size_, end_tokens_, chat_ ? &*chat_ : nullptr),
        generator_(engine_, tokenizer_, end_tokens_, vocab_size_,
                   {.max_requests = options.max_queued_requests,
                    .max_tokens = options.max_queued_tokens,
                    .rejoin_seconds = options.cluster.rejoin_timeout_seconds}) {}

  RequestId submit(Request request, EventSink sink) {
    return generator_.submit(reader_.read(std::move(request)), std::move(sink));
  }
  void cancel(RequestId request) { generator_.cancel(request); }

  Answer answer(Request request) {
    EventQueue events;
    submit(std::move(request), events.sink());
    Answer answer;
    for (bool last = false; !last;) {
      GenerationEvent event = events.pop();
      if (event.error) throw *event.error;
      last = event.last;
      add_event(std::move(event), answer);
    }
    return answer;
  }

  Generation generate(Request request, const TextSink& on_text) {
    Running running(generator_, reader_.read(std::move(request)));
    Generation answer;
    while (!running.ended()) {
      const std::optional<GenerationEvent> event = running.next(kSinkInterval);
      if (event && event->error) throw *event->error;
      if (event) {
        answer.text += event->text;
        if (event->finish_reason) answer.reason = *event->finish_reason;
        answer.prompt_tokens = event->usage.prompt_tokens;
        answer.completion_tokens = event->usage.completion_tokens;
        answer.first_token_seconds = event->usage.first_token_seconds;
        answer.total_seconds = event->usage.total_seconds;
      }
      if (on_text && !on_text(event ? event->text : std::string())) {
        answer.reason = FinishReason::kCancelled;
        return answer;
      }
    }
    return answer;
  }

  [[nodiscard]] const Tokenizer& tokenizer() const noexcept { return tokenizer_; }
  [[nodiscard]] const RequestReader& reader() const noexcept { return reader_; }
  [[nodiscard]] const Engine& engine() const noexcept { return engine_; }
  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] const std::string& chat_template() const noexcept { return chat_template_; }
  [[nodiscard]] const SamplingParams& default_params() const noexcept { return defaults_; }
  [[nodiscard]] ModelFigures figures() const;
  [[nodiscard]] ClusterFigures cluster_figures() const {
    ClusterFigures figures;
    if (ranks_ != nullptr) figures.up = !ranks_->has_lost_rank();
    if (cluster_ == nullptr) return figures;
    figures = cluster_->figures();
    figures.steps_in_flight_limit = generator_.figures().scheduler.in_flight_limit;
    return figures;
  }

 private:
  /// With workers, an engine whose stages are spread over them; with ranks, one whose layers are divided over them.
  [[nodiscard]] EngineConfig engine_config_for(const LoadOptions& options) {
    check_ranks_wanted(options);
    EngineConfig config = serving_config(options);
    if (options.cluster.is_used()) {
      config.assemble = [this, &options](const StageSite& site) {
        return cluster::assemble_cluster(site, options.cluster,
                                         [this](const cluster::Cluster& made) { cluster_ = &made; });
      };
    }
    if (options.tensor_parallel_size > 1) {
      config.threads = std::max(1, config.threads / options.tensor_parallel_size);
      config.assemble = [this, &options](const StageSite& site) {
        StageAssembly made = assemble_ranks(site, options);
        ranks_ = static_cast<const cluster::RankExecutor*>(made.executor.get());
        return made;
      };
    }
    return config;
  }
  /// How often a caller that waits for text is called at least.
  static constexpr std::chrono::milliseconds kSinkInterval{50};

  [[nodiscard]] static std::string chat_template_of(const ModelFiles& files, const LoadOptions& options) {
    if (!options.chat_template.empty()) return options.chat_template;
    const std::string* source = files.chat_template();
    return source != nullptr ? *source : std::string();
  }
  [[nodiscard]] std::optional<ChatPrompt> chat_prompt(const std::string& source) const {
    if (chat_template_.empty()) return std::nullopt;
    return ChatPrompt(source, chat_template_, tokenizer_);
  }

  std::string name_;
  Tokenizer tokenizer_;
  std::vector<TokenId> end_tokens_;
  SamplingParams defaults_;
  std::string chat_template_;
  std::optional<ChatPrompt> chat_;
  const cluster::Cluster* cluster_ = nullptr;     ///< the engine's executor, where there are workers
  const cluster::RankExecutor* ranks_ = nullptr;  ///< the same, where there are ranks
  Engine engine_;
  int32_t vocab_size_;
  RequestReader reader_;
  Generator generator_;
};

ModelFigures Model::Impl::figures() const {
  const GeneratorFigures now = generator_.figures();
  const auto share = [](int64_t part, int64_t whole) {
    return static_cast<double>(part) / static_cast<double>(std::max<int64_t>(whole, 1));
  };
  const int64_t places = now.cache.used_blocks * kBlockTokens;
  return {.running_requests = now.running_requests,
          .queued_requests = now.queued_requests,
          .queued_tokens = now.queued_tokens,
          .finished = now.finished,
          .cancelled = now.cancelled,
          .failed = now.failed,
          .refused = now.refused,
          .prompt_tokens = now.prompt_tokens,
          .cached_tokens = now.cached_tokens,
          .completion_tokens = now.completion_tokens,
          .running_sequences = now.scheduler.running,
          .waiting_sequences = now.scheduler.waiting,
          .steps = now.scheduler.steps,
          .failed_steps = now.failed_steps,
          .preemptions = now.scheduler.preemptions,
          .step_tokens = now.scheduler.step_tokens,
          .last_step_tokens = now.scheduler.last_step_tokens,
          .prompt_step_tokens = now.scheduler.prompt_step_tokens,
          .step_seconds = now.step_seconds,
          .cost_model_error = now.scheduler.cost_error,
          .seconds_without_step = now.seconds_without_step,
          .backlog_seconds = now.backlog_seconds,
          .kv_cache_used = share(now.cache.used_blocks, now.cache.total_blocks),
          .kv_blocks = now.cache.total_blocks,
          .kv_used_blocks = now.cache.used_blocks,
          .kv_cached_blocks = now.cache.cached_blocks,
          .kv_evicted_blocks = now.cache.evicted_blocks,
          .kv_block_tokens = kBlockTokens,
          .kv_fragmentation = places > 0 ? 1 - share(now.cache.used_tokens, places) : 0,
          .prefix_query_tokens = now.cache.query_tokens,
          .prefix_hit_tokens = now.cache.hit_tokens};
}

Model::Model(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Model::Model(Model&&) noexcept = default;
Model& Model::operator=(Model&&) noexcept = default;
Model::~Model() = default;

Model Model::load(const std::string& model, const LoadOptions& options) {
  return Model(std::make_unique<Impl>(open_model(model), options));
}

RequestId Model::submit(Request request, EventSink sink) { return impl_->submit(std::move(request), std::move(sink)); }
void Model::cancel(RequestId request) { impl_->cancel(request); }
Answer Model::answer(Request request) { return impl_->answer(std::move(request)); }

Generation Model::generate(std::string_view prompt, const SamplingParams& params, const TextSink& on_text) {
  return impl_->generate({.input = std::string(prompt), .sampling = params}, on_text);
}

Generation Model::chat(std::span<const Message> messages, const SamplingParams& params, const TextSink& on_text) {
  return impl_->generate({.input = std::vector<Message>(messages.begin(), messages.end()), .sampling = params},
                         on_text);
}

std::vector<int32_t> Model::tokenize(std::string_view text, bool add_special, bool parse_special) const {
  return impl_->tokenizer().encode(text, {.add_special = add_special, .parse_special = parse_special});
}

std::vector<int32_t> Model::tokenize(const Conversation& conversation) const {
  if (conversation.chat_template.empty()) return impl_->reader().chat().encode(conversation);
  return ChatPrompt("chat_template", conversation.chat_template, impl_->tokenizer()).encode(conversation);
}

std::string Model::detokenize(std::span<const int32_t> tokens, bool skip_special) const {
  return impl_->tokenizer().decode(tokens, skip_special);
}

std::string Model::token_bytes(int32_t token) const {
  const Tokenizer& tokenizer = impl_->tokenizer();
  return std::string(tokenizer.is_special(token) ? tokenizer.token_text(token) : tokenizer.token_bytes(token));
}

const std::string& Model::chat_template() const noexcept { return impl_->chat_template(); }
int32_t Model::max_model_len() const noexcept { return impl_->engine().max_model_len(); }
int64_t Model::kv_cache_tokens() const noexcept { return impl_->engine().kv_tokens(); }
const std::string& Model::name() const noexcept { return impl_->name(); }
ModelFigures Model::figures() const { return impl_->figures(); }
ClusterFigures Model::cluster_figures() const { return impl_->cluster_figures(); }
const SamplingParams& Model::default_params() const noexcept { return impl_->default_params(); }

}  // namespace headrace
