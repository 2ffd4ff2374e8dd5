#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>
#include <random>

#include "api/chat_prompt.h"
#include "api/engine_options.h"
#include "api/model_text.h"
#include "engine/tuning_file.h"
#include "headrace/headrace.h"
#include "sample/sampler.h"
#include "sample/sampling_options.h"
#include "sample/stop_matcher.h"
#include "text/detokenizer.h"
#include "text/grammar.h"

namespace headrace {
namespace {

using RunClock = std::chrono::steady_clock;

double seconds_since(RunClock::time_point start) {
  return std::chrono::duration<double>(RunClock::now() - start).count();
}

uint64_t random_seed() {
  std::random_device device;
  return uint64_t{device()} << 32 | device();
}

/// A sequence in the engine's cache, given back by the destructor.
class SequenceLease {
 public:
  SequenceLease(Engine& engine, SequenceId id) : engine_(engine), id_(id) {}
  ~SequenceLease() { engine_.finish(id_); }
  SequenceLease(const SequenceLease&) = delete;
  SequenceLease& operator=(const SequenceLease&) = delete;
  [[nodiscard]] SequenceId id() const noexcept { return id_; }

 private:
  Engine& engine_;
  SequenceId id_;
};

}  // namespace

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
  if (const auto path = tuning_path(config.isa, config.threads)) config.tuning = load_tuning(*path);
  return config;
}

class Model::Impl {
 public:
  Impl(const ModelFiles& files, const LoadOptions& options)
      : name_(files.name()),
        tokenizer_(tokenizer_of(files)),
        end_tokens_(end_tokens(files, tokenizer_)),
        defaults_(default_sampling(files)),
        engine_(files, engine_config(options), options.on_progress),
        // A matrix may have more rows than there are tokens; those past the end are padding.
        vocab_size_(std::min(engine_.spec().vocab_size, tokenizer_.vocab_size())),
        sampler_(vocab_size_) {
    if (!options.chat_template.empty()) {
      chat_.emplace("chat template", options.chat_template, tokenizer_);
    } else if (const std::string* source = files.chat_template()) {
      chat_.emplace(name_, *source, tokenizer_);
    }
  }

  Generation generate(std::string_view prompt, const SamplingParams& params, const TextSink& on_text) {
    const auto start = RunClock::now();
    std::vector<TokenId> tokens = tokenizer_.encode(prompt, {.add_special = true, .parse_special = true});
    return run(std::move(tokens), params, on_text, {.continues_text = true}, start);
  }

  Generation chat(std::span<const Message> messages, const SamplingParams& params, const TextSink& on_text) {
    const auto start = RunClock::now();
    if (!chat_) {
      throw Error(
          ErrorCode::kUnsupported,
          cat(name_, " has no chat template; give one with --chat-template, or use the prompt as it is (--raw)"));
    }
    return run(chat_->encode(messages), params, on_text, {}, start);
  }

  [[nodiscard]] bool has_chat_template() const noexcept { return chat_.has_value(); }
  [[nodiscard]] int32_t max_model_len() const noexcept { return engine_.max_model_len(); }
  [[nodiscard]] const SamplingParams& default_params() const noexcept { return defaults_; }

 private:
  Generation run(std::vector<TokenId> prompt, const SamplingParams& params, const TextSink& on_text,
                 DetokenizeOptions detokenize, RunClock::time_point start);
  [[nodiscard]] std::optional<GrammarMatcher> compile_grammar(const StructuredOutput& spec);
  /// Logits of the newest token; empty while the prompt is not read to its end.
  [[nodiscard]] std::span<const float> next_logits();
  [[nodiscard]] bool is_end(TokenId token) const { return std::ranges::binary_search(end_tokens_, token); }

  std::string name_;
  Tokenizer tokenizer_;
  std::vector<TokenId> end_tokens_;
  SamplingParams defaults_;
  std::optional<ChatPrompt> chat_;
  Engine engine_;
  int32_t vocab_size_;
  Sampler sampler_;
  std::optional<GrammarFactory> grammars_;  // made when the first is asked for
};

std::optional<GrammarMatcher> Model::Impl::compile_grammar(const StructuredOutput& spec) {
  if (std::holds_alternative<std::monostate>(spec)) return std::nullopt;
  if (!grammars_) grammars_.emplace(tokenizer_, end_tokens_);
  return grammars_->compile(spec);
}

std::span<const float> Model::Impl::next_logits() {
  const StepResult* result = engine_.step();
  HR_CHECK(result != nullptr, "nothing to compute");
  if (result->outputs.empty()) return {};
  const auto at = static_cast<int64_t>(result->outputs.size() - 1) * result->width;
  const auto logits = std::span(result->data).subspan(static_cast<size_t>(at), static_cast<size_t>(vocab_size_));
  if (std::ranges::any_of(logits, [](float logit) { return std::isnan(logit); })) {
    throw Error(ErrorCode::kCorrupt, cat(name_, ": the logits are not numbers; its weights are broken or too large"));
  }
  return logits;
}

Generation Model::Impl::run(std::vector<TokenId> prompt, const SamplingParams& params, const TextSink& on_text,
                            DetokenizeOptions detokenize, RunClock::time_point start) {
  check_sampling_params(params);
  check_sampling_tokens(params, vocab_size_);
  const auto prompt_tokens = static_cast<int32_t>(prompt.size());
  const int32_t room = engine_.max_model_len() - prompt_tokens;
  if (room <= 0) {
    throw Error(ErrorCode::kInvalidArgument,
                cat("the prompt has ", prompt_tokens, " tokens, which leaves no room for an answer in ",
                    engine_.max_model_len(), " (--max-model-len)"));
  }
  const int32_t max_tokens = params.max_tokens > 0 ? std::min(params.max_tokens, room) : room;

  SamplingState sampling(params, params.seed ? *params.seed : random_seed(), 0, prompt, end_tokens_,
                         compile_grammar(params.structured_output));
  StreamDetokenizer detokenizer(tokenizer_, detokenize);
  StopMatcher stop(params.stop, params.include_stop_str_in_output);
  const std::optional<SequenceId> id = engine_.start(std::move(prompt), prompt_tokens + max_tokens, prompt_tokens - 1);
  HR_CHECK(id.has_value(), "the cache has room for one sequence");
  const SequenceLease sequence(engine_, *id);

  Generation answer{.text = {}, .reason = FinishReason::kStop, .prompt_tokens = prompt_tokens};
  const auto give_out = [&](const std::string& piece) {
    answer.text += piece;
    if (!on_text || on_text(piece)) return true;
    answer.reason = FinishReason::kCancelled;
    return false;
  };
  const auto generate = [&] {
    for (;;) {
      const std::span<const float> logits = next_logits();
      if (logits.empty()) {
        if (!give_out({})) return;
        continue;
      }
      const TokenId token = sampler_.sample(logits, sampling, prompt_tokens + answer.completion_tokens);
      if (token == kNoToken) {
        const std::string why = sampling.failure();
        throw Error(ErrorCode::kInvalidArgument, why.empty() ? "no token is left that may be chosen" : why);
      }
      if (++answer.completion_tokens == 1) answer.first_token_seconds = seconds_since(start);
      if (is_end(token) && !params.ignore_eos) return;
      const bool is_stop = std::ranges::find(params.stop_token_ids, token) != params.stop_token_ids.end();
      if (is_stop && !params.include_stop_str_in_output) return;
      const std::string piece = detokenizer.push(token);
      if (!give_out(sampling.may_stop() ? stop.push(piece) : stop.pass(piece)) || stop.stopped() || is_stop) return;
      if (answer.completion_tokens == max_tokens) {
        answer.reason = FinishReason::kLength;
        return;
      }
      sampling.accept(token);
      if (sampling.is_finished()) return;
      engine_.append(sequence.id(), token);
    }
  };
  generate();
  // What was held back as the possible beginning of a stop text or as half a character.
  const std::string rest = stop.push(detokenizer.finish()) + stop.finish();
  if (answer.reason != FinishReason::kCancelled && !rest.empty()) give_out(rest);
  answer.total_seconds = seconds_since(start);
  return answer;
}

std::string_view finish_reason_name(FinishReason reason) noexcept {
  switch (reason) {
    case FinishReason::kStop:
      return "stop";
    case FinishReason::kLength:
      return "length";
    case FinishReason::kCancelled:
      return "cancelled";
  }
  return "unknown";
}

Model::Model(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Model::Model(Model&&) noexcept = default;
Model& Model::operator=(Model&&) noexcept = default;
Model::~Model() = default;

Model Model::load(const std::string& model, const LoadOptions& options) {
  return Model(std::make_unique<Impl>(open_model(model), options));
}

Generation Model::generate(std::string_view prompt, const SamplingParams& params, const TextSink& on_text) {
  return impl_->generate(prompt, params, on_text);
}

Generation Model::chat(std::span<const Message> messages, const SamplingParams& params, const TextSink& on_text) {
  return impl_->chat(messages, params, on_text);
}

bool Model::has_chat_template() const noexcept { return impl_->has_chat_template(); }
int32_t Model::max_model_len() const noexcept { return impl_->max_model_len(); }
const SamplingParams& Model::default_params() const noexcept { return impl_->default_params(); }

}  // namespace headrace
