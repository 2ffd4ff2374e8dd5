//! Tokens that are matched in the text before it is cut into words, and the names of tokens that end a generation.

use crate::error::{corrupt, Result};
use aho_corasick::{AhoCorasick, MatchKind};

/// Finds the longest of a set of tokens, from the left.
pub struct Matcher {
    automaton: Option<AhoCorasick>,
    ids: Vec<u32>,
    strip_right: Vec<bool>,
}

pub enum Fragment<'a> {
    Text(&'a str),
    Token(u32),
}

impl Matcher {
    /// `tokens`: text, id, and whether white space after it is dropped.
    pub fn new(tokens: &[(&str, u32, bool)]) -> Result<Self> {
        let automaton = if tokens.is_empty() {
            None
        } else {
            let built = AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(tokens.iter().map(|t| t.0));
            Some(built.map_err(|e| corrupt(format!("added tokens: {e}")))?)
        };
        Ok(Self {
            automaton,
            ids: tokens.iter().map(|t| t.1).collect(),
            strip_right: tokens.iter().map(|t| t.2).collect(),
        })
    }

    pub fn cut<'a>(&self, text: &'a str) -> Vec<Fragment<'a>> {
        let mut out = Vec::new();
        let mut pos = 0;
        if let Some(automaton) = &self.automaton {
            for found in automaton.find_iter(text) {
                let index = found.pattern().as_usize();
                if found.start() > pos {
                    out.push(Fragment::Text(&text[pos..found.start()]));
                }
                out.push(Fragment::Token(self.ids[index]));
                pos = found.end();
                if self.strip_right[index] {
                    let rest = &text[pos..];
                    pos = text.len() - rest.trim_start_matches([' ', '\t', '\n', '\r', '\x0b', '\x0c']).len();
                }
            }
        }
        if pos < text.len() {
            out.push(Fragment::Text(&text[pos..]));
        }
        out
    }
}

/// Whether a token of this name ends a generation, in whatever vocabulary it is found.
/// Source: the list in `src/llama-vocab.cpp` of github.com/ggml-org/llama.cpp.
pub fn ends_generation(name: &str) -> bool {
    matches!(
        name,
        "<|eot_id|>"
            | "<|im_end|>"
            | "<|end|>"
            | "<|return|>"
            | "<|call|>"
            | "<|flush|>"
            | "<|calls|>"
            | "<end_of_turn>"
            | "<|endoftext|>"
            | "</s>"
            | "<|eom_id|>"
            | "<EOT>"
            | "_<EOT>"
            | "[EOT]"
            | "[EOS]"
            | "<|end_of_text|>"
            | "<end_of_utterance>"
            | "<eos>"
            | "<turn|>"
            | "<|tool_response>"
            | "<｜end▁of▁sentence｜>"
            | "[e~["
            // A model that begins a next file or repository has finished this one.
            | "<|fim_pad|>"
            | "<fim-pad>"
            | "<fim_pad>"
            | "<|fim_repo|>"
            | "<|repo_name|>"
            | "<fim-repo>"
            | "<reponame>"
            | "<|file_sep|>"
    )
}

/// Takes names off the list that have another meaning where certain others exist: `<|end|>` ends only a part of the
/// answer in gpt-oss and Solar, `</s>` nothing in Gemma 4.
pub fn drop_false_ends(ends: &mut Vec<u32>, id_of: impl Fn(&str) -> Option<u32>) {
    let ending = |ends: &[u32], name: &str| id_of(name).is_some_and(|id| ends.contains(&id));
    let call = ending(ends, "<|call|>") || ending(ends, "<|calls|>");
    if call && (ending(ends, "<|return|>") || ending(ends, "<|flush|>")) {
        let end = id_of("<|end|>");
        ends.retain(|id| Some(*id) != end);
    }
    if ending(ends, "<|tool_response>") {
        let end = id_of("</s>");
        ends.retain(|id| Some(*id) != end);
    }
}
