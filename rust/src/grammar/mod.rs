//! Constrained decoding: which tokens may come next so that the whole text fits a schema, a pattern or a grammar. The
//! work is done by the crate llguidance; here are the limits, and what keeps marks of the model out of texts.

mod lark;
mod spec;
mod structural_tag;

use crate::error::{ErrorKind, Result, TextError};
use llguidance::earley::SlicedBiasComputer;
use llguidance::toktrie::{
    InferenceCapabilities, SimpleVob, TokEnv, TokRxInfo, TokTrie, TokenId, TokenizerEnv, INVALID_TOKEN,
};
use llguidance::{Matcher, ParserFactory};
pub use spec::Kind;
use std::sync::Arc;

/// The vocabulary as a tree of bytes.
struct Vocabulary {
    trie: TokTrie,
}

impl TokenizerEnv for Vocabulary {
    fn tok_trie(&self) -> &TokTrie {
        &self.trie
    }

    fn tokenize_bytes(&self, text: &[u8]) -> Vec<TokenId> {
        self.trie.greedy_tokenize(text)
    }

    /// The model chooses how text is cut into tokens, also text that the grammar leaves no choice about.
    fn tokenize_is_canonical(&self) -> bool {
        false
    }
}

pub struct Factory {
    parsers: ParserFactory,
}

/// Shared by threads that compile at once.
const _: fn() = || {
    fn shared<T: Send + Sync>() {}
    fn moved<T: Send>() {}
    shared::<Factory>();
    moved::<Grammar>();
};

impl Factory {
    /// `words`: the bytes that each token adds, those of a special token after `SPECIAL_MARKER`, so that no text matches
    /// them. `ends`: the tokens that end a text.
    pub fn new(words: Vec<Vec<u8>>, ends: &[TokenId]) -> Result<Self> {
        let size = words.len() as u32;
        let mut trie = TokTrie::from(&TokRxInfo::new(size, INVALID_TOKEN), &words);
        let ends: Vec<TokenId> = ends.iter().copied().filter(|&end| end < size).collect();
        if !ends.is_empty() {
            trie = trie.with_eos_tokens(&ends);
        }
        let env: TokEnv = Arc::new(Vocabulary { trie });
        let slices = SlicedBiasComputer::general_slices();
        let mut parsers = ParserFactory::new(&env, InferenceCapabilities::default(), &slices).map_err(|e| {
            TextError { kind: ErrorKind::Internal, message: format!("vocabulary of the grammars: {e}") }
        })?;
        parsers.quiet();
        let limits = parsers.limits_mut();
        limits.verbose_errors = false;
        limits.max_lexer_states = spec::MAX_LEXER_STATES;
        Ok(Self { parsers })
    }

    pub fn compile(&self, kind: Kind, texts: &[&str]) -> Result<Grammar> {
        let source = spec::grammar_of(kind, texts)?;
        spec::with_deep_stack(|| {
            let parser = self.parsers.create_parser(source).map_err(|e| spec::bad(kind, e))?;
            let mut matcher = Matcher::new(Ok(parser));
            // An automaton that is too large, or one that fits no token, shows at its first step.
            if !matcher.is_stopped() {
                matcher.compute_mask().map_err(|e| spec::bad(kind, e))?;
            }
            Ok(Grammar { matcher })
        })
    }
}

/// One text that is being written.
pub struct Grammar {
    matcher: Matcher,
}

impl Clone for Grammar {
    /// Nothing is shared, so that the copies may work on different threads without waiting for each other.
    fn clone(&self) -> Self {
        Self { matcher: self.matcher.deep_clone() }
    }
}

impl Grammar {
    /// Sets a bit for each token that may come next and clears all others.
    pub fn mask(&mut self, bits: &mut [u32]) -> Result<()> {
        let mask: SimpleVob = self.matcher.compute_mask_or_eos().map_err(stuck)?;
        let from = mask.as_slice();
        for (i, word) in bits.iter_mut().enumerate() {
            *word = from.get(i).copied().unwrap_or(0);
        }
        Ok(())
    }

    /// False, and no change, for a token that may not come next.
    pub fn accept(&mut self, token: TokenId) -> Result<bool> {
        let env = self.matcher.tok_env().map_err(stuck)?;
        if self.is_finished() {
            return Ok(env.tok_trie().eos_tokens().contains(&token)); // complete already, the end changes nothing
        }
        let is_in = (token as usize) < env.tok_trie().vocab_size();
        Ok(is_in && self.matcher.try_consume_tokens(&[token]).map_err(stuck)? == 1)
    }

    /// Goes on by text, however the model has cut it into tokens. False: it does not go on so; the grammar has moved some
    /// way and is of no use any more.
    pub fn accept_text(&mut self, text: &[u8]) -> Result<bool> {
        let env = self.matcher.tok_env().map_err(stuck)?;
        let tokens = env.tok_trie().greedy_tokenize(text);
        let written: usize = tokens.iter().map(|&token| env.tok_trie().token(token).len()).sum();
        let is_whole = written == text.len();
        Ok(is_whole && self.matcher.try_consume_tokens(&tokens).map_err(stuck)? == tokens.len())
    }

    pub fn may_end(&mut self) -> Result<bool> {
        Ok(self.is_finished() || self.matcher.is_accepting().map_err(stuck)?)
    }

    pub fn is_finished(&self) -> bool {
        self.matcher.is_stopped() && !self.matcher.is_error()
    }
}

fn stuck(error: impl std::fmt::Display) -> TextError {
    TextError { kind: ErrorKind::BadGrammar, message: format!("grammar: {}", spec::first_words(error)) }
}
