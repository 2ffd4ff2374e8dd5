//! Byte-pair encoding with ranked merges, over GPT-2's byte alphabet or over characters.

use super::merge::{Word, NO_TOKEN};
use super::pre_table::{Alphabet, Pre};
use super::split::Splitter;
use super::vocab::byte_alphabet;
use crate::error::{corrupt, Result};
use ahash::AHashMap;
use std::borrow::Cow;

pub struct Bpe {
    splitter: Splitter,
    alphabet: Alphabet,
    /// (left, right) to (rank, joined).
    merges: AHashMap<(u32, u32), (u32, u32)>,
    /// Token of each byte: its character in the byte alphabet, else `<0xNN>`.
    bytes: [u32; 256],
    /// Characters that are tokens; empty over the byte alphabet.
    characters: AHashMap<char, u32>,
    /// Words that are tokens, where those win over merges.
    words: AHashMap<Vec<u8>, u32>,
}

impl Bpe {
    /// `ids`: tokens that plain text may become. Merges that speak of others are left out.
    pub fn new(pre: &'static Pre, ids: &AHashMap<&str, u32>, byte_ids: &[u32; 256], merges: &[&str]) -> Result<Self> {
        let mut table = AHashMap::with_capacity(merges.len());
        let mut joined = String::new();
        for (rank, merge) in merges.iter().enumerate() {
            // A token may begin with the blank itself, but never be empty.
            let cut = merge.char_indices().skip(1).find(|(_, c)| *c == ' ').map(|(at, _)| at);
            let (left, right) = match cut {
                Some(at) if at + 1 < merge.len() => (&merge[..at], &merge[at + 1..]),
                _ => {
                    return Err(corrupt(format!(
                        "tokenizer.ggml.merges[{rank}]: expected two tokens parted by a blank"
                    )))
                }
            };
            joined.clear();
            joined.push_str(left);
            joined.push_str(right);
            if let (Some(l), Some(r), Some(j)) = (ids.get(left), ids.get(right), ids.get(joined.as_str())) {
                table.entry((*l, *r)).or_insert((rank as u32, *j));
            }
        }
        let mut bytes = *byte_ids;
        let mut characters = AHashMap::new();
        if pre.alphabet == Alphabet::Bytes {
            for (byte, c) in byte_alphabet().into_iter().enumerate() {
                bytes[byte] = ids.get(c.encode_utf8(&mut [0; 4]) as &str).copied().unwrap_or(NO_TOKEN);
            }
        } else {
            for (piece, id) in ids {
                let mut chars = piece.chars();
                if let (Some(c), None) = (chars.next(), chars.next()) {
                    characters.insert(c, *id);
                }
            }
        }
        let mut words = AHashMap::new();
        if pre.ignore_merges {
            for (piece, id) in ids {
                let key = if pre.alphabet == Alphabet::Bytes {
                    super::vocab::from_byte_alphabet(piece)
                } else {
                    Some(piece.as_bytes().to_vec())
                };
                key.and_then(|k| words.insert(k, *id));
            }
        } else if pre.alphabet == Alphabet::CharactersEscapedSpace {
            // Runs of line ends are tokens that no merges lead to.
            for (piece, id) in ids.iter().filter(|(piece, _)| piece.bytes().all(|b| b == b'\n')) {
                words.insert(piece.as_bytes().to_vec(), *id);
            }
        }
        Ok(Self { splitter: Splitter::new(pre)?, alphabet: pre.alphabet, merges: table, bytes, characters, words })
    }

    pub fn encode(&self, text: &str, out: &mut Vec<u32>) {
        let text = match self.alphabet {
            Alphabet::CharactersEscapedSpace => Cow::Owned(text.replace(' ', "\u{2581}")),
            _ => Cow::Borrowed(text),
        };
        let mut word = Word::default();
        for piece in self.splitter.split(&text) {
            let piece = &text[piece];
            if let Some(id) = self.words.get(piece.as_bytes()) {
                out.push(*id);
                continue;
            }
            word.clear();
            if self.alphabet == Alphabet::Bytes {
                for (at, byte) in piece.bytes().enumerate() {
                    word.push(self.bytes[byte as usize], at..at + 1);
                }
            } else {
                for (at, c) in piece.char_indices() {
                    word.push(self.characters.get(&c).copied().unwrap_or(NO_TOKEN), at..at + c.len_utf8());
                }
            }
            word.merge(|l, r| self.merges.get(&(l.id, r.id)).copied());
            for symbol in word.symbols() {
                if symbol.id != NO_TOKEN {
                    out.push(symbol.id);
                } else if self.alphabet != Alphabet::Bytes {
                    let bytes = piece[symbol.range()].bytes().map(|b| self.bytes[b as usize]);
                    out.extend(bytes.filter(|id| *id != NO_TOKEN));
                }
            }
        }
    }
}
