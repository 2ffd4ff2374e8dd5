#include "api/model_text.h"

#include <algorithm>

#include "base/error.h"
#include "text/gguf_vocab.h"

namespace headrace {
namespace {

/// A token id or a list of them, as "eos_token_id" is.
void add_ids(const Metadata& metadata, std::string_view key, std::vector<TokenId>& ids) {
  const MetaValue* value = metadata.find(key);
  if (value == nullptr) return;
  if (std::holds_alternative<int64_t>(value->data)) {
    ids.push_back(static_cast<TokenId>(*metadata.get_int(key, 0, INT32_MAX)));
  } else if (metadata.list_size(key) != 0) {
    const std::span<const int64_t> list = *metadata.get_ints(key);
    for (const int64_t id : list) {
      if (id < 0 || id > INT32_MAX) metadata.fail(key, cat("token id ", id));
      ids.push_back(static_cast<TokenId>(id));
    }
  }
}

}  // namespace

Tokenizer tokenizer_of(const ModelFiles& files) {
  if (files.format() == ModelFormat::kGguf)
    return Tokenizer::from_gguf(files.path(), vocab_from_gguf(files.metadata()));
  if (files.tokenizer_json().empty()) {
    throw LoadError(files.path(), "no tokenizer.json; models with another tokenizer file are not supported",
                    ErrorCode::kUnsupported);
  }
  return Tokenizer::from_json(files.path() + "/tokenizer.json", files.tokenizer_json(), files.tokenizer_config_json());
}

std::vector<TokenId> end_tokens(const ModelFiles& files, const Tokenizer& tokenizer) {
  std::vector<TokenId> ids(tokenizer.end_ids().begin(), tokenizer.end_ids().end());
  if (files.format() == ModelFormat::kSafetensors) {
    add_ids(files.metadata(), "eos_token_id", ids);
    add_ids(files.generation_config(), "eos_token_id", ids);
  }
  std::ranges::sort(ids);
  const auto repeated = std::ranges::unique(ids);
  ids.erase(repeated.begin(), repeated.end());
  return ids;
}

SamplingParams default_sampling(const ModelFiles& files) {
  const Metadata& config = files.generation_config();
  SamplingParams params{.temperature = 0};
  const auto read = [&](std::string_view key, float& value) {
    if (const std::optional<double> found = config.get_float(key)) value = static_cast<float>(*found);
  };
  read("temperature", params.temperature);
  if (config.get_bool("do_sample") == false) params.temperature = 0;
  if (const std::optional<int64_t> k = config.get_int("top_k", 0, INT32_MAX)) params.top_k = static_cast<int32_t>(*k);
  read("top_p", params.top_p);
  read("min_p", params.min_p);
  read("repetition_penalty", params.repetition_penalty);
  try {
    check_sampling_params(params);
  } catch (const Error& error) {
    throw LoadError(config.source(), error.message());
  }
  return params;
}

}  // namespace headrace
