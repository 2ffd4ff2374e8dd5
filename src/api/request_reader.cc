#include "api/request_reader.h"

#include <xxhash.h>

#include <random>

#include "sample/sampling_options.h"

namespace headrace {
namespace {

uint64_t random_seed() {
  thread_local std::random_device device;
  return uint64_t{device()} << 32 | device();
}

/// 0 for an empty name, so that whoever names nothing shares with all who do not.
uint64_t hash_of(const std::string& name) { return name.empty() ? 0 : XXH3_64bits(name.data(), name.size()); }

}  // namespace

RequestReader::RequestReader(std::string model_name, const Tokenizer& tokenizer, int32_t vocab_size,
                             std::span<const TokenId> end_tokens, const ChatPrompt* chat)
    : model_name_(std::move(model_name)),
      tokenizer_(tokenizer),
      vocab_size_(vocab_size),
      end_tokens_(end_tokens.begin(), end_tokens.end()),
      chat_(chat) {}

const ChatPrompt& RequestReader::chat() const {
  if (chat_ == nullptr) {
    throw Error(ErrorCode::kUnsupported, cat(model_name_,
                                             " has no chat template; give one with --chat-template, or use "
                                             "the prompt as it is (--raw)"));
  }
  return *chat_;
}

GrammarMatcher RequestReader::compile(const StructuredOutput& output) {
  std::call_once(factory_once_, [this] { factory_.emplace(tokenizer_, end_tokens_); });
  try {
    return factory_->compile(output);
  } catch (const Error& error) {
    const auto* grammar = std::get_if<GrammarOutput>(&output);
    const std::string name = grammar != nullptr && !grammar->origin.empty() ? grammar->origin : "structured_output";
    throw ParameterError(name, cat(name, ": ", error.message()));
  }
}

GenerationInput RequestReader::read(Request request) {
  check_sampling_params(request.sampling);
  check_sampling_tokens(request.sampling, vocab_size_);
  GenerationInput input;
  if (const auto* text = std::get_if<std::string>(&request.input)) {
    input.prompt = tokenizer_.encode(*text, {.add_special = true, .parse_special = true});
    input.continues_text = true;
  } else if (const auto* messages = std::get_if<std::vector<Message>>(&request.input)) {
    input.prompt = chat().encode({.messages = messages_json(*messages)});
  } else {
    input.prompt = std::move(std::get<std::vector<int32_t>>(request.input));
    input.continues_text = request.continues_text;
  }
  if (!std::holds_alternative<std::monostate>(request.sampling.structured_output)) {
    input.grammar = compile(request.sampling.structured_output);
    input.gate = make_output_gate(request.sampling.structured_output_start, tokenizer_, end_tokens_);
  }
  input.seed = request.sampling.seed ? *request.sampling.seed : random_seed();
  input.sampling = std::move(request.sampling);
  input.score_only = request.score_only;
  if (input.score_only) input.sampling.best_of = 0;  // there is nothing to compare
  input.priority = request.priority;
  input.tenant = TenantId{static_cast<uint32_t>(hash_of(request.tenant))};
  input.salt = hash_of(request.cache_salt);
  input.queue_timeout_seconds = request.queue_timeout_seconds;
  input.timeout_seconds = request.timeout_seconds;
  return input;
}

}  // namespace headrace
