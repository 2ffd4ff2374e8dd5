#include "text/tokenizer.h"

#include <algorithm>
#include <sstream>
#include <utility>

#include "base/cat.h"
#include "base/error.h"
#include "text/replace_invalid.h"
#include "text/rust_ffi.h"
#include "text/rust_value.h"

namespace headrace {
namespace {

/// Throws what the Rust side said, if it said something; frees its text.
void check(const HrError& error, std::string_view path) {
  if (error.kind == RustErrorKind::kNone) return;
  const std::string message = take_string(error.message);
  if (error.kind == RustErrorKind::kInternal) throw Error(ErrorCode::kInternal, cat(printable(path), ": ", message));
  throw LoadError(path, message,
                  error.kind == RustErrorKind::kUnsupported ? ErrorCode::kUnsupported : ErrorCode::kCorrupt);
}

std::vector<HrSlice> slices_of(const std::vector<std::string>& texts) {
  std::vector<HrSlice> slices;
  slices.reserve(texts.size());
  for (const std::string& text : texts) slices.push_back(slice_of(text));
  return slices;
}

std::optional<TokenId> id_or_none(int64_t id) {
  return id < 0 ? std::nullopt : std::optional<TokenId>(static_cast<TokenId>(id));
}

}  // namespace

void Tokenizer::Free::operator()(HrTokenizer* tokenizer) const noexcept { hr_tokenizer_free(tokenizer); }
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;
Tokenizer::~Tokenizer() = default;

Tokenizer::Tokenizer(HrTokenizer* owned) : rust_(owned) {
  const HrTokenizerInfo info = hr_tokenizer_info(owned);
  pieces_ = {reinterpret_cast<const char*>(info.pieces), info.piece_ends};
  texts_ = {reinterpret_cast<const char*>(info.texts), info.text_ends};
  flags_ = info.flags;
  vocab_size_ = static_cast<int32_t>(info.num_ids);
  bos_ = id_or_none(info.bos);
  eos_ = id_or_none(info.eos);
  unk_ = id_or_none(info.unk);
  pad_ = id_or_none(info.pad);
  add_bos_ = info.add_bos;
  add_eos_ = info.add_eos;
  strips_first_space_ = info.strip_first_space;
  kind_ = view_of(info.kind);
  pre_ = view_of(info.pre);
  for (TokenId id = 0; id < vocab_size_; ++id) {
    if (is_end(id)) end_ids_.push_back(id);
  }
}

Tokenizer Tokenizer::from_json(std::string_view path, std::string_view tokenizer_json,
                               std::string_view tokenizer_config_json) {
  HrError error{};
  HrTokenizer* const made = hr_tokenizer_from_json(slice_of(tokenizer_json), slice_of(tokenizer_config_json), &error);
  check(error, path);
  return Tokenizer(made);
}

Tokenizer Tokenizer::from_gguf(std::string_view path, const GgufVocab& vocab) {
  const std::vector<HrSlice> tokens = slices_of(vocab.tokens);
  const std::vector<HrSlice> merges = slices_of(vocab.merges);
  const auto flag = [](std::optional<bool> value) { return value ? int32_t{*value} : -1; };
  const HrGgufVocab raw{
      .model = slice_of(vocab.model),
      .pre = slice_of(vocab.pre),
      .model_name = slice_of(vocab.model_name),
      .tokens = tokens.data(),
      .num_tokens = tokens.size(),
      .scores = vocab.scores.data(),
      .num_scores = vocab.scores.size(),
      .types = vocab.types.data(),
      .num_types = vocab.types.size(),
      .merges = merges.data(),
      .num_merges = merges.size(),
      .bos = vocab.bos.value_or(-1),
      .eos = vocab.eos.value_or(-1),
      .eot = vocab.eot.value_or(-1),
      .eom = vocab.eom.value_or(-1),
      .unk = vocab.unk.value_or(-1),
      .pad = vocab.pad.value_or(-1),
      .add_bos = flag(vocab.add_bos),
      .add_eos = flag(vocab.add_eos),
      .add_space_prefix = flag(vocab.add_space_prefix),
  };
  HrError error{};
  HrTokenizer* const made = hr_tokenizer_from_gguf(&raw, &error);
  check(error, path);
  return Tokenizer(made);
}

std::vector<TokenId> Tokenizer::encode(std::string_view text, EncodeOptions options) const {
  HrError error{};
  const HrIds ids =
      hr_tokenizer_encode(rust_.get(), slice_of(text), options.add_special, options.parse_special, &error);
  check(error, "encode");
  const std::unique_ptr<const HrIds, void (*)(const HrIds*)> owner(&ids,
                                                                   [](const HrIds* owned) { hr_ids_free(*owned); });
  return {ids.data, ids.data + ids.len};
}

std::string Tokenizer::decode(std::span<const TokenId> ids, bool skip_special) const {
  std::string bytes;
  for (const TokenId id : ids) {
    if (!skip_special || !is_special(id)) bytes += token_bytes(id);
  }
  if (strips_first_space_ && bytes.starts_with(' ')) bytes.erase(0, 1);
  return replace_invalid_utf8(bytes);
}

std::string_view Tokenizer::StringTable::at(size_t i) const noexcept {
  const size_t begin = i == 0 ? 0 : ends[i - 1];
  return {bytes + begin, ends[i] - begin};
}

std::string_view Tokenizer::token_bytes(TokenId id) const noexcept {
  return in_vocab(id) ? texts_.at(static_cast<size_t>(id)) : std::string_view{};
}

std::string_view Tokenizer::token_text(TokenId id) const noexcept {
  return in_vocab(id) ? pieces_.at(static_cast<size_t>(id)) : std::string_view{};
}

std::optional<TokenId> Tokenizer::token_id(std::string_view piece) const noexcept {
  return id_or_none(hr_tokenizer_id_of(rust_.get(), slice_of(piece)));
}

uint8_t Tokenizer::flags(TokenId id) const noexcept { return in_vocab(id) ? flags_[id] : uint8_t{0}; }
bool Tokenizer::is_special(TokenId id) const noexcept { return (flags(id) & kFlagSpecial) != 0; }
bool Tokenizer::is_end(TokenId id) const noexcept { return (flags(id) & kFlagEnd) != 0; }

std::vector<std::string> gguf_pre_tokenizers() {
  std::istringstream lines(take_string(hr_pre_tokenizer_names()));
  std::vector<std::string> names;
  for (std::string name; std::getline(lines, name);) names.push_back(name);
  return names;
}

}  // namespace headrace
