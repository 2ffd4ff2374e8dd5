#include "text/grammar.h"

#include <algorithm>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/error.h"
#include "text/rust_ffi.h"
#include "text/rust_value.h"

namespace headrace {
namespace {

/// Throws what the Rust side said, if it said something; frees its text.
void check(const HrError& error) {
  if (error.kind == RustErrorKind::kNone) return;
  const bool is_refused = error.kind == RustErrorKind::kBadGrammar || error.kind == RustErrorKind::kCorrupt;
  throw Error(is_refused ? ErrorCode::kInvalidArgument : ErrorCode::kInternal, take_string(error.message));
}

struct GrammarTexts {
  GrammarKind kind = GrammarKind::kJsonObject;
  std::vector<HrSlice> texts{};
};

GrammarTexts texts_of(const StructuredOutput& spec) {
  return std::visit(
      [](const auto& output) -> GrammarTexts {
        using T = std::decay_t<decltype(output)>;
        if constexpr (std::is_same_v<T, JsonSchemaOutput>) {
          return {GrammarKind::kJsonSchema, {slice_of(output.schema)}};
        } else if constexpr (std::is_same_v<T, RegexOutput>) {
          return {GrammarKind::kRegex, {slice_of(output.pattern)}};
        } else if constexpr (std::is_same_v<T, GrammarOutput>) {
          return {GrammarKind::kLark, {slice_of(output.lark)}};
        } else if constexpr (std::is_same_v<T, StructuralTagOutput>) {
          return {GrammarKind::kStructuralTag, {slice_of(output.tag)}};
        } else if constexpr (std::is_same_v<T, ChoiceOutput>) {
          GrammarTexts choice{.kind = GrammarKind::kChoice};
          for (const std::string& text : output.choices) choice.texts.push_back(slice_of(text));
          return choice;
        } else {
          HR_CHECK((std::is_same_v<T, JsonObjectOutput>), "no structured output is asked for");
          return {};
        }
      },
      spec);
}

}  // namespace

void GrammarMatcher::Free::operator()(HrGrammar* grammar) const noexcept { hr_grammar_free(grammar); }
GrammarMatcher::GrammarMatcher(GrammarMatcher&&) noexcept = default;
GrammarMatcher& GrammarMatcher::operator=(GrammarMatcher&&) noexcept = default;
GrammarMatcher::~GrammarMatcher() = default;

GrammarMatcher::GrammarMatcher(const GrammarMatcher& other) : vocab_size_(other.vocab_size_), failure_(other.failure_) {
  HrError error{};
  rust_.reset(hr_grammar_clone(other.rust_.get(), &error));
  check(error);
}

GrammarMatcher& GrammarMatcher::operator=(const GrammarMatcher& other) { return *this = GrammarMatcher(other); }

void GrammarMatcher::compute_mask(std::span<uint32_t> bits) {
  HrError error{};
  if (failure_.empty()) hr_grammar_mask(rust_.get(), bits.data(), bits.size(), &error);
  if (error.kind != RustErrorKind::kNone) failure_ = take_string(error.message);
  if (!failure_.empty()) std::ranges::fill(bits, 0u);
}

bool GrammarMatcher::accept(TokenId token) {
  if (!failure_.empty() || token < 0) return false;
  HrError error{};
  const bool is_accepted = hr_grammar_accept(rust_.get(), static_cast<uint32_t>(token), &error);
  if (error.kind != RustErrorKind::kNone) failure_ = take_string(error.message);
  return is_accepted;
}

bool GrammarMatcher::accept_text(std::string_view text) {
  if (!failure_.empty()) return false;
  GrammarMatcher next = *this;
  HrError error{};
  const bool is_accepted = hr_grammar_accept_text(next.rust_.get(), slice_of(text), &error);
  if (error.kind != RustErrorKind::kNone) hr_buffer_free(error.message);
  if (is_accepted) *this = std::move(next);
  return is_accepted;
}

bool GrammarMatcher::may_end() {
  if (!failure_.empty()) return false;
  HrError error{};
  const bool may_end = hr_grammar_may_end(rust_.get(), &error);
  if (error.kind != RustErrorKind::kNone) failure_ = take_string(error.message);
  return may_end;
}

bool GrammarMatcher::is_finished() const noexcept { return hr_grammar_is_finished(rust_.get()); }

void GrammarFactory::Free::operator()(HrGrammarFactory* factory) const noexcept { hr_grammar_factory_free(factory); }
GrammarFactory::GrammarFactory(GrammarFactory&&) noexcept = default;
GrammarFactory& GrammarFactory::operator=(GrammarFactory&&) noexcept = default;
GrammarFactory::~GrammarFactory() = default;

GrammarFactory::GrammarFactory(const Tokenizer& tokenizer, std::span<const TokenId> end_tokens)
    : vocab_size_(tokenizer.vocab_size()) {
  const auto size = static_cast<size_t>(tokenizer.vocab_size());
  std::vector<std::string> marked;  // words of special tokens, kept alive for their slices
  marked.reserve(size);
  std::vector<HrSlice> words;
  words.reserve(size);
  for (TokenId id = 0; id < tokenizer.vocab_size(); ++id) {
    if (tokenizer.is_special(id) || std::ranges::find(end_tokens, id) != end_tokens.end()) {
      marked.push_back(kSpecialMarker + std::string(tokenizer.token_text(id)));
      words.push_back(slice_of(marked.back()));
    } else {
      words.push_back(slice_of(tokenizer.token_bytes(id)));
    }
  }
  const std::vector<uint32_t> ends(end_tokens.begin(), end_tokens.end());
  HrError error{};
  rust_.reset(hr_grammar_factory_new(words.data(), words.size(), ends.data(), ends.size(), &error));
  check(error);
}

GrammarMatcher GrammarFactory::compile(const StructuredOutput& spec) const {
  const GrammarTexts texts = texts_of(spec);
  HrError error{};
  HrGrammar* const made = hr_grammar_compile(rust_.get(), texts.kind, texts.texts.data(), texts.texts.size(), &error);
  check(error);
  return GrammarMatcher(made, vocab_size_);
}

}  // namespace headrace
