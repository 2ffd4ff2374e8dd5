//! SentencePiece's byte-pair encoding: the pair whose joined token has the highest score is joined first, words are not
//! cut, spaces are U+2581, and characters without a token become byte tokens.

use super::merge::{Word, NO_TOKEN};
use ahash::AHashMap;

pub struct Spm {
    /// Token text to (rank of its score, id); only tokens that plain text may become.
    tokens: AHashMap<Vec<u8>, (u32, u32)>,
    longest: usize,
    /// No token goes on past the beginning of a word, so words can be merged one by one.
    by_words: bool,
    /// Token of each byte, or the unknown token.
    bytes: [u32; 256],
}

impl Spm {
    pub fn new(tokens: &AHashMap<&str, u32>, scores: &[f32], byte_ids: &[u32; 256], unknown: Option<u32>) -> Self {
        let score_of = |id: u32| scores.get(id as usize).copied().unwrap_or(0.0);
        let ranked = tokens.iter().map(|(piece, id)| (piece.as_bytes().to_vec(), (descending(score_of(*id)), *id)));
        let mut bytes = *byte_ids;
        for (byte, id) in bytes.iter_mut().enumerate().filter(|(_, id)| **id == NO_TOKEN) {
            let character = (byte < 128).then(|| char::from(byte as u8).to_string());
            let named = character.and_then(|c| tokens.get(c.as_str()).copied());
            *id = named.or(unknown).unwrap_or(NO_TOKEN);
        }
        Self {
            tokens: ranked.collect(),
            longest: tokens.keys().map(|piece| piece.len()).max().unwrap_or(0),
            by_words: tokens.keys().all(|piece| word_end(piece) == piece.len()),
            bytes,
        }
    }

    /// `text` as the user wrote it, with the space that goes before it, if any.
    pub fn encode(&self, text: &str, out: &mut Vec<u32>) {
        let text = text.replace(' ', "\u{2581}");
        let mut word = Word::default();
        let mut rest = text.as_str();
        while !rest.is_empty() {
            let (piece, tail) = rest.split_at(if self.by_words { word_end(rest) } else { rest.len() });
            self.encode_piece(piece, &mut word, out);
            rest = tail;
        }
    }

    fn encode_piece(&self, text: &str, word: &mut Word, out: &mut Vec<u32>) {
        let find = |range: std::ops::Range<usize>| {
            let piece = (range.len() <= self.longest).then(|| &text.as_bytes()[range]);
            piece.and_then(|p| self.tokens.get(p)).copied()
        };
        word.clear();
        for (at, c) in text.char_indices() {
            let range = at..at + c.len_utf8();
            word.push(find(range.clone()).map_or(NO_TOKEN, |t| t.1), range);
        }
        word.merge(|l, r| find(l.start..r.start + r.len));
        for symbol in word.symbols() {
            if symbol.id != NO_TOKEN {
                out.push(symbol.id);
            } else {
                let bytes = text[symbol.range()].bytes().map(|b| self.bytes[b as usize]);
                out.extend(bytes.filter(|id| *id != NO_TOKEN));
            }
        }
    }
}

/// Where the second word of `text` begins: at the first U+2581 after another character.
fn word_end(text: &str) -> usize {
    let begin = text.find(|c| c != '\u{2581}').unwrap_or(text.len());
    text[begin..].find('\u{2581}').map_or(text.len(), |at| begin + at)
}

/// A number that is lower the higher `score` is; any two floats compare, so a file's NaN does no harm.
fn descending(score: f32) -> u32 {
    let bits = (score + 0.0).to_bits(); // -0.0 + 0.0 == 0.0: equal scores get equal ranks
    let ascending = if bits >> 31 == 1 { !bits } else { bits | 1 << 31 };
    !ascending
}
