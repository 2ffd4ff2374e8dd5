#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"

struct HrTokenizer;

namespace headrace {

/// The keys `tokenizer.ggml.*` of a GGUF file as they stand there (docs/gguf.md of github.com/ggml-org/ggml).
struct GgufVocab {
  std::string model;       ///< "gpt2": byte-level byte-pair encoding, "llama": SentencePiece
  std::string pre;         ///< name of the pre-tokenizer; empty where absent
  std::string model_name;  ///< general.name: Phi-3 alone drops white space after its special tokens
  std::vector<std::string> tokens;
  std::vector<float> scores;   ///< one a token, or empty
  std::vector<int32_t> types;  ///< one a token, or empty: 1 normal, 2 unknown, 3 control, 4 user defined, 5, 6 byte
  std::vector<std::string> merges;  ///< "left right", best first
  std::optional<TokenId> bos, eos, eot, eom, unk, pad;
  std::optional<bool> add_bos, add_eos, add_space_prefix;
};

struct EncodeOptions {
  /// Put the tokens around the text that the model expects of a whole prompt (begin-of-text and the like).
  bool add_special = false;
  /// Let the names of special tokens in the text become those tokens. Never for text that a user wrote.
  bool parse_special = false;
};

/// Text to token ids and back. Made from a Hugging Face tokenizer.json or from the vocabulary inside a GGUF file.
/// Move-only; a moved-from tokenizer may only be destroyed or assigned to. Threading: const functions may be called
/// from any number of threads at once.
class Tokenizer {
 public:
  /// `tokenizer_config_json` gives the names of special tokens; may be empty. `path` is for messages.
  /// Throws LoadError: kCorrupt, or kUnsupported for a decoder that does not work token by token.
  [[nodiscard]] static Tokenizer from_json(std::string_view path, std::string_view tokenizer_json,
                                           std::string_view tokenizer_config_json = {});
  /// Throws LoadError: kCorrupt, or kUnsupported for another tokenizer.ggml.model or an unknown pre-tokenizer.
  [[nodiscard]] static Tokenizer from_gguf(std::string_view path, const GgufVocab& vocab);

  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;
  ~Tokenizer();

  /// Token ids of `text`; bytes that are not UTF-8 count as U+FFFD. Without `parse_special` no special token comes out
  /// of the text (added tokens that are not special still do, as in their model's own tokenizer).
  /// Time and memory O(n log n) in the text. Throws Error kInternal only for a bug in the library.
  [[nodiscard]] std::vector<TokenId> encode(std::string_view text, EncodeOptions options = {}) const;

  /// The text of `ids`, always valid UTF-8: what is not becomes U+FFFD. Ids outside the vocabulary add nothing.
  [[nodiscard]] std::string decode(std::span<const TokenId> ids, bool skip_special = true) const;

  /// The bytes of text that a token adds (a part of a character is possible); empty outside the vocabulary.
  [[nodiscard]] std::string_view token_bytes(TokenId id) const noexcept;
  /// The token as its vocabulary writes it ("▁the", "Ġthe"); empty outside the vocabulary.
  [[nodiscard]] std::string_view token_text(TokenId id) const noexcept;
  /// The id of a vocabulary entry, as token_text gives it.
  [[nodiscard]] std::optional<TokenId> token_id(std::string_view piece) const noexcept;
  /// Whether a token is a mark for the model rather than text: control and unknown tokens, special added tokens.
  [[nodiscard]] bool is_special(TokenId id) const noexcept;
  /// Whether a token ends a generation.
  [[nodiscard]] bool is_end(TokenId id) const noexcept;

  /// Highest id + 1.
  [[nodiscard]] int32_t vocab_size() const noexcept { return vocab_size_; }
  [[nodiscard]] std::optional<TokenId> bos() const noexcept { return bos_; }
  [[nodiscard]] std::optional<TokenId> eos() const noexcept { return eos_; }
  [[nodiscard]] std::optional<TokenId> unk() const noexcept { return unk_; }
  [[nodiscard]] std::optional<TokenId> pad() const noexcept { return pad_; }
  /// All tokens that end a generation, ascending: those that the file names, and those known by name ("<|im_end|>").
  [[nodiscard]] std::span<const TokenId> end_ids() const noexcept { return end_ids_; }
  /// Whether encode puts bos() before (eos() after) the text on `add_special`.
  [[nodiscard]] bool add_bos() const noexcept { return add_bos_; }
  [[nodiscard]] bool add_eos() const noexcept { return add_eos_; }
  /// Whether the text of a whole sequence drops one leading space (the one that SentencePiece put there).
  [[nodiscard]] bool strips_first_space() const noexcept { return strips_first_space_; }
  /// "BPE", "SPM", or the model's type in tokenizer.json ("Unigram").
  [[nodiscard]] std::string_view kind() const noexcept { return kind_; }
  /// How text is cut into words ("llama-bpe", "Sequence(Split, ByteLevel)"); empty where it is not.
  [[nodiscard]] std::string_view pre_tokenizer() const noexcept { return pre_; }

 private:
  struct Free {
    void operator()(HrTokenizer* tokenizer) const noexcept;
  };
  /// Strings one after the other inside the Rust object; entry i is the bytes [ends[i - 1], ends[i]).
  struct StringTable {
    const char* bytes = nullptr;
    const uint32_t* ends = nullptr;
    [[nodiscard]] std::string_view at(size_t i) const noexcept;
  };

  explicit Tokenizer(HrTokenizer* owned);
  [[nodiscard]] uint8_t flags(TokenId id) const noexcept;
  [[nodiscard]] bool in_vocab(TokenId id) const noexcept { return id >= 0 && id < vocab_size_; }

  std::unique_ptr<HrTokenizer, Free> rust_;
  StringTable pieces_, texts_;
  const uint8_t* flags_ = nullptr;
  int32_t vocab_size_ = 0;
  std::optional<TokenId> bos_, eos_, unk_, pad_;
  std::vector<TokenId> end_ids_;
  bool add_bos_ = false, add_eos_ = false, strips_first_space_ = false;
  std::string_view kind_, pre_;  // inside the Rust object
};

/// The names of `tokenizer.ggml.pre` that are known.
[[nodiscard]] std::vector<std::string> gguf_pre_tokenizers();

}  // namespace headrace
