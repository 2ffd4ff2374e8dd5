#pragma once

#include <cstddef>
#include <cstdint>

/// The C interface of the Rust library (rust/src/ffi.rs declares the same; the two change together). Only the .cc files
/// of this room include it. No function throws or lets a Rust panic out.
extern "C" {

/// Borrowed bytes; `data` may be null where `len` is 0.
struct HrSlice {
  const uint8_t* data;
  size_t len;
};

/// Owned bytes, freed by hr_buffer_free.
struct HrBuffer {
  uint8_t* data;
  size_t len;
};

/// Owned token ids, freed by hr_ids_free.
struct HrIds {
  uint32_t* data;
  size_t len;
};

enum class RustErrorKind : int32_t {
  kNone = 0,
  kCorrupt = 1,
  kUnsupported = 2,
  kTemplateSyntax = 3,
  kTemplateRaised = 4,
  kTemplateRuntime = 5,
  kInternal = 6,
  kBadGrammar = 7,
};

/// `message` is owned by the caller where `kind` is not kNone.
struct HrError {
  RustErrorKind kind;
  HrBuffer message;
};

struct HrTokenizer;
struct HrTemplate;
struct HrGrammarFactory;
struct HrGrammar;

/// What the texts given to hr_grammar_compile are; all but choices are one text.
enum class GrammarKind : int32_t {
  kJsonSchema = 0,
  kJsonObject = 1,
  kRegex = 2,
  kChoice = 3,
  kLark = 4,
  kStructuralTag = 5,
};

/// headrace::GgufVocab; -1 stands for an absent id or flag.
struct HrGgufVocab {
  HrSlice model, pre, model_name;
  const HrSlice* tokens;
  size_t num_tokens;
  const float* scores;
  size_t num_scores;
  const int32_t* types;
  size_t num_types;
  const HrSlice* merges;
  size_t num_merges;
  int32_t bos, eos, eot, eom, unk, pad;
  int32_t add_bos, add_eos, add_space_prefix;
};

/// Views that live as long as the tokenizer. Entry i of a table is the bytes [ends[i - 1], ends[i]).
struct HrTokenizerInfo {
  HrSlice kind, pre;
  size_t num_ids;
  const uint8_t* pieces;
  const uint32_t* piece_ends;
  const uint8_t* texts;
  const uint32_t* text_ends;
  const uint8_t* flags;  // kFlagSpecial, kFlagEnd
  int64_t bos, eos, unk, pad;
  bool add_bos, add_eos, strip_first_space;
};

/// Writes the time into `out` by a strftime `format`; the number of bytes, 0 where it fails.
using HrFormatTime = size_t (*)(const void* context, HrSlice format, uint8_t* out, size_t capacity);

struct HrTemplateInput {
  HrSlice messages, tools, variables;
  bool add_generation_prompt;
  HrFormatTime format_time;
  const void* time_context;
};

void hr_buffer_free(HrBuffer buffer);
void hr_ids_free(HrIds ids);

HrTokenizer* hr_tokenizer_from_json(HrSlice json, HrSlice config, HrError* error);
HrTokenizer* hr_tokenizer_from_gguf(const HrGgufVocab* vocab, HrError* error);
void hr_tokenizer_free(HrTokenizer* tokenizer);
HrIds hr_tokenizer_encode(const HrTokenizer* tokenizer, HrSlice text, bool add_special, bool parse_special,
                          HrError* error);
int64_t hr_tokenizer_id_of(const HrTokenizer* tokenizer, HrSlice piece);
HrTokenizerInfo hr_tokenizer_info(const HrTokenizer* tokenizer);
HrBuffer hr_pre_tokenizer_names();

HrTemplate* hr_template_new(HrSlice name, HrSlice source, HrError* error);
void hr_template_free(HrTemplate* chat_template);
HrBuffer hr_template_render(const HrTemplate* chat_template, const HrTemplateInput* input, HrError* error);

/// `words`: the bytes that each token adds, of a special token kSpecialMarker and its name. `ends`: what ends a text.
HrGrammarFactory* hr_grammar_factory_new(const HrSlice* words, size_t num_words, const uint32_t* ends, size_t num_ends,
                                         HrError* error);
void hr_grammar_factory_free(HrGrammarFactory* factory);
/// Threads may compile at once. The grammar does not need the factory afterwards.
HrGrammar* hr_grammar_compile(const HrGrammarFactory* factory, GrammarKind kind, const HrSlice* texts, size_t num_texts,
                              HrError* error);
HrGrammar* hr_grammar_clone(const HrGrammar* grammar, HrError* error);
void hr_grammar_free(HrGrammar* grammar);
/// Bit i % 32 of bits[i / 32]: whether token i may come next.
void hr_grammar_mask(HrGrammar* grammar, uint32_t* bits, size_t num_words, HrError* error);
/// False, and no change, for a token that may not come next.
bool hr_grammar_accept(HrGrammar* grammar, uint32_t token, HrError* error);
/// False for a text that may not come next; the grammar is of no use then.
bool hr_grammar_accept_text(HrGrammar* grammar, HrSlice text, HrError* error);
bool hr_grammar_may_end(HrGrammar* grammar, HrError* error);
bool hr_grammar_is_finished(const HrGrammar* grammar);
}

namespace headrace {
inline constexpr uint8_t kFlagSpecial = 1;  ///< bits of HrTokenizerInfo::flags
inline constexpr uint8_t kFlagEnd = 2;
inline constexpr char kSpecialMarker = '\xff';  ///< no text holds this byte: it is never part of UTF-8
}  // namespace headrace
