#include "text/gguf_vocab.h"

#include <limits>

#include "base/cat.h"

namespace headrace {
namespace {

constexpr int64_t kMaxId = std::numeric_limits<TokenId>::max();

std::vector<std::string> copy_of(std::optional<std::span<const std::string>> texts) {
  return texts ? std::vector<std::string>(texts->begin(), texts->end()) : std::vector<std::string>{};
}

std::optional<TokenId> id_at(const Metadata& metadata, std::string_view name) {
  const auto id = metadata.get_int(cat("tokenizer.ggml.", name, "_token_id"), -1, std::numeric_limits<uint32_t>::max());
  // Files write "none" as -1 or as 0xffffffff.
  if (!id || *id < 0 || *id > kMaxId) return std::nullopt;
  return static_cast<TokenId>(*id);
}

}  // namespace

GgufVocab vocab_from_gguf(const Metadata& metadata) {
  GgufVocab vocab;
  vocab.model = metadata.require_string("tokenizer.ggml.model");
  vocab.pre = metadata.get_string("tokenizer.ggml.pre").value_or("");
  // A name is a label for people; one of a wrong type is no reason to refuse the file.
  if (const MetaValue* name = metadata.find("general.name")) {
    if (const auto* text = std::get_if<std::string>(&name->data)) vocab.model_name = *text;
  }
  vocab.tokens = copy_of(metadata.require_strings("tokenizer.ggml.tokens"));
  vocab.merges = copy_of(metadata.get_strings("tokenizer.ggml.merges"));
  if (const auto scores = metadata.get_floats("tokenizer.ggml.scores")) {
    for (const double score : *scores) vocab.scores.push_back(static_cast<float>(score));
  }
  if (const auto types = metadata.get_ints("tokenizer.ggml.token_type")) {
    for (const int64_t type : *types) {
      if (type < 0 || type > 6) metadata.fail("tokenizer.ggml.token_type", cat(type, ", expected 0 to 6"));
      vocab.types.push_back(static_cast<int32_t>(type));
    }
  }
  vocab.bos = id_at(metadata, "bos");
  vocab.eos = id_at(metadata, "eos");
  vocab.eot = id_at(metadata, "eot");
  vocab.eom = id_at(metadata, "eom");
  vocab.unk = id_at(metadata, "unknown");
  vocab.pad = id_at(metadata, "padding");
  vocab.add_bos = metadata.get_bool("tokenizer.ggml.add_bos_token");
  vocab.add_eos = metadata.get_bool("tokenizer.ggml.add_eos_token");
  vocab.add_space_prefix = metadata.get_bool("tokenizer.ggml.add_space_prefix");
  return vocab;
}

}  // namespace headrace
