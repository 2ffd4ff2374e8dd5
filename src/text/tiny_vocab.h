#pragma once

#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/cat.h"
#include "text/tokenizer.h"

namespace headrace {

// Vocabularies made in code, for tests.

/// The character of GPT-2's alphabet for `byte`, in UTF-8.
inline std::string alphabet_character(int byte) {
  const auto printable = [](int b) { return (b >= '!' && b <= '~') || (b >= 0xa1 && b <= 0xff && b != 0xad); };
  int code = byte;
  if (!printable(byte)) {
    code = 0x100;
    for (int b = 0; b < byte; ++b) code += printable(b) ? 0 : 1;
  }
  if (code < 0x80) return std::string(1, static_cast<char>(code));
  return {static_cast<char>(0xc0 | (code >> 6)), static_cast<char>(0x80 | (code & 0x3f))};
}

/// Byte-level: the 256 characters of GPT-2's alphabet, then every string of two to four over "1", "a", "!", blank and
/// line feed with merges that lead to it, so that a word of at most four of these characters becomes one token and the
/// tokens of a text show how it was cut. Last come "<|bos|>" and "<|im_end|>" (control) and "<tool>" (user defined).
[[nodiscard]] inline GgufVocab tiny_byte_level_vocab(std::string pre) {
  GgufVocab vocab;
  vocab.model = "gpt2";
  vocab.pre = std::move(pre);
  const auto add = [&](std::string token, int32_t type) {
    vocab.tokens.push_back(std::move(token));
    vocab.types.push_back(type);
    return static_cast<TokenId>(vocab.tokens.size() - 1);
  };
  for (int byte = 0; byte < 256; ++byte) add(alphabet_character(byte), 1);

  // by_length[n]: all strings of n letters.
  std::array<std::vector<std::string>, 5> by_length;
  for (const char letter : std::string_view("1a! \n")) {
    by_length[1].push_back(alphabet_character(static_cast<unsigned char>(letter)));
  }
  for (size_t length = 2; length <= 4; ++length) {
    for (const std::string& head : by_length[length - 1]) {
      for (const std::string& letter : by_length[1]) by_length[length].push_back(head + letter);
    }
    for (const std::string& token : by_length[length]) add(token, 1);
  }
  for (size_t left = 1; left < 4; ++left) {
    for (size_t right = 1; left + right <= 4; ++right) {
      for (const std::string& l : by_length[left]) {
        for (const std::string& r : by_length[right]) vocab.merges.push_back(cat(l, " ", r));
      }
    }
  }
  vocab.bos = add("<|bos|>", 3);
  vocab.eos = add("<|im_end|>", 3);
  add("<tool>", 4);
  return vocab;
}

/// SentencePiece: <unk>, <s>, </s>, 256 byte tokens, single characters of "▁ab<s>/", then "ab" (-1), "▁a" (-2),
/// "ba" (-2), "</" (-3), "s>" (-3) and the user-defined "<tool>".
[[nodiscard]] inline GgufVocab tiny_sentencepiece_vocab() {
  GgufVocab vocab;
  vocab.model = "llama";
  const auto add = [&](std::string token, float score, int32_t type) {
    vocab.tokens.push_back(std::move(token));
    vocab.scores.push_back(score);
    vocab.types.push_back(type);
  };
  add("<unk>", 0, 2);
  add("<s>", 0, 3);
  add("</s>", 0, 3);
  for (int byte = 0; byte < 256; ++byte) {
    constexpr std::string_view kHex = "0123456789ABCDEF";
    const auto b = static_cast<size_t>(byte);
    add(cat("<0x", kHex[b / 16], kHex[b % 16], ">"), 0, 6);
  }
  for (const char* character : {"\u2581", "a", "b", "<", "s", ">", "/"}) add(character, -10, 1);
  add("ab", -1, 1);
  add("\u2581a", -2, 1);
  add("ba", -2, 1);
  add("</", -3, 1);
  add("s>", -3, 1);
  add("<tool>", 0, 4);
  return vocab;
}

}  // namespace headrace
