#pragma once

#include "text/tokenizer.h"

namespace headrace {

/// Vocabularies made in code, for tests.
///
/// Byte-level: the 256 characters of GPT-2's alphabet, then every string of two to four over "1", "a", "!", blank and
/// line feed with merges that lead to it, so that a word of at most four of these characters becomes one token and the
/// tokens of a text show how it was cut. Last come "<|bos|>" and "<|im_end|>" (control) and "<tool>" (user defined).
[[nodiscard]] GgufVocab tiny_byte_level_vocab(std::string pre);

/// SentencePiece: <unk>, <s>, </s>, 256 byte tokens, single characters of "▁ab<s>/", then "ab" (-1), "▁a" (-2),
/// "ba" (-2), "</" (-3), "s>" (-3) and the user-defined "<tool>".
[[nodiscard]] GgufVocab tiny_sentencepiece_vocab();

}  // namespace headrace
