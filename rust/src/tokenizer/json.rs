//! Tokenizers from a Hugging Face `tokenizer.json`, with the names that its `tokenizer_config.json` gives to tokens.

use super::special::{drop_false_ends, ends_generation};
use super::text_rule::TextRule;
use super::vocab::{VocabTable, FLAG_END};
use super::{Encoder, Info, Tokenizer};
use crate::error::{corrupt, Result};
use ahash::AHashSet;
use serde_json::Value;
use tokenizers::tokenizer::{AddedVocabulary, Model, OffsetType, PreTokenizer, Token};
use tokenizers::AddedToken;

pub struct JsonEncoder {
    tokenizer: tokenizers::Tokenizer,
    /// The added tokens without the special ones, which plain text must not become.
    plain_added: AddedVocabulary,
    special: AHashSet<u32>,
    unknown: Option<u32>,
}

impl JsonEncoder {
    pub fn encode(&self, text: &str, add_special: bool, parse_special: bool) -> tokenizers::Result<Vec<u32>> {
        let tokenizer = &self.tokenizer;
        let added = if parse_special { tokenizer.get_added_vocabulary() } else { &self.plain_added };
        let mut pieces = added.extract_and_normalize(tokenizer.get_normalizer(), text);
        if let Some(pre) = tokenizer.get_pre_tokenizer() {
            pre.pre_tokenize(&mut pieces)?;
        }
        pieces.tokenize(|piece| self.tokens_of(piece.get()))?;
        let encoding = pieces.into_encoding(None, 0, OffsetType::None)?;
        Ok(tokenizer.post_process(encoding, None, add_special)?.get_ids().to_vec())
    }

    /// The model's tokens of a piece of plain text. Some vocabularies hold the special tokens too (Unigram's "</s>",
    /// words that win over merges): such a token is cut after its first character, and its parts are looked at again.
    fn tokens_of(&self, piece: &str) -> tokenizers::Result<Vec<Token>> {
        let mut out = Vec::new();
        for token in self.tokenizer.get_model().tokenize(piece)? {
            if !self.special.contains(&token.id) || Some(token.id) == self.unknown {
                out.push(token);
                continue;
            }
            let text = piece.get(token.offsets.0..token.offsets.1).unwrap_or("");
            let cut = text.chars().next().map_or(0, char::len_utf8);
            if cut < text.len() {
                out.extend(self.tokens_of(&text[..cut])?);
                out.extend(self.tokens_of(&text[cut..])?);
            }
        }
        Ok(out)
    }

    pub fn id_of(&self, piece: &str) -> Option<u32> {
        self.tokenizer.token_to_id(piece)
    }
}

pub fn load(json: &[u8], config: &[u8]) -> Result<Tokenizer> {
    let config: Value = if config.is_empty() {
        Value::Null
    } else {
        serde_json::from_slice(config).map_err(|e| corrupt(format!("tokenizer_config.json: {e}")))?
    };
    let mut tokenizer = tokenizers::Tokenizer::from_bytes(json).map_err(|e| corrupt(format!("tokenizer.json: {e}")))?;
    // Length is the scheduler's business.
    tokenizer.with_padding(None);
    tokenizer.with_truncation(None).map_err(|e| corrupt(format!("tokenizer.json: {e}")))?;
    add_missing(&mut tokenizer, &config)?;

    let mut plain_added = tokenizer.get_added_vocabulary().clone();
    plain_added.set_encode_special_tokens(true);
    let decoder = serde_json::to_value(tokenizer.get_decoder()).unwrap_or(Value::Null);
    let rule = TextRule::from_decoder(&decoder)?;

    let vocab = tokenizer.get_vocab(true);
    let mut pieces: Vec<Option<&str>> = Vec::new();
    for (piece, id) in &vocab {
        let id = *id as usize;
        // A hole of some size is padding; a huge one would be an attack on memory.
        if id > 4 * vocab.len() + 65536 {
            return Err(corrupt(format!("tokenizer.json: token id {id} in a vocabulary of {} tokens", vocab.len())));
        }
        if id >= pieces.len() {
            pieces.resize(id + 1, None);
        }
        pieces[id] = Some(piece);
    }
    let added = tokenizer.get_added_tokens_decoder();
    let mut table = VocabTable::default();
    for (id, piece) in pieces.iter().enumerate() {
        let piece = piece.unwrap_or("");
        match added.get(&(id as u32)) {
            Some(token) => table.push(&token.content, &rule.added_text(&token.content), token.special),
            None => table.push(piece, &rule.text(piece), false),
        }
    }

    let id_of = |name: &str| vocab.get(name).copied();
    let named = |key: &str| token_name(&config[key]).and_then(id_of);
    let (bos, eos, unk, pad) = (named("bos_token"), named("eos_token"), named("unk_token"), named("pad_token"));
    let mut ends: Vec<u32> =
        added.iter().filter(|(_, token)| ends_generation(&token.content)).map(|(id, _)| *id).collect();
    drop_false_ends(&mut ends, id_of);
    ends.extend(eos);
    for id in ends {
        table.flags[id as usize] |= FLAG_END;
    }

    let model = serde_json::from_slice::<Value>(json).unwrap_or(Value::Null);
    let unknown = model["model"]["unk_token"].as_str().and_then(id_of).or(unk);
    let special = added.iter().filter(|(_, token)| token.special).map(|(id, _)| *id).collect();
    let kind = model["model"]["type"].as_str().unwrap_or("BPE").to_string();
    let pre = pre_name(&model["pre_tokenizer"]);
    drop(model);
    let encoder = JsonEncoder { tokenizer, plain_added, special, unknown };
    let frame = encoder.encode("", true, false).map_err(|e| corrupt(format!("tokenizer.json: {e}")))?;
    let info = Info {
        kind,
        pre,
        bos,
        eos,
        unk: unknown,
        pad,
        add_bos: bos.is_some() && frame.first() == bos.as_ref(),
        add_eos: eos.is_some() && frame.last() == eos.as_ref(),
        strip_first_space: rule.strip_first_space,
    };
    Ok(Tokenizer::new(Encoder::Json(Box::new(encoder)), table, info))
}

/// Tokens that only tokenizer_config.json lists, as transformers adds them.
fn add_missing(tokenizer: &mut tokenizers::Tokenizer, config: &Value) -> Result<()> {
    let Some(listed) = config["added_tokens_decoder"].as_object() else { return Ok(()) };
    let mut missing: Vec<(u32, AddedToken)> = Vec::new();
    for (id, token) in listed {
        let content = token["content"].as_str().unwrap_or("");
        if content.is_empty() || tokenizer.get_added_vocabulary().get_vocab().contains_key(content) {
            continue;
        }
        let flag = |key: &str, default: bool| token[key].as_bool().unwrap_or(default);
        let special = flag("special", false);
        let added = AddedToken::from(content, special)
            .single_word(flag("single_word", false))
            .lstrip(flag("lstrip", false))
            .rstrip(flag("rstrip", false))
            .normalized(flag("normalized", !special));
        missing.push((id.parse().unwrap_or(u32::MAX), added));
    }
    missing.sort_by_key(|(id, _)| *id);
    let added = tokenizer.add_tokens(missing.into_iter().map(|(_, token)| token));
    added.map(|_| ()).map_err(|e| corrupt(format!("tokenizer_config.json: added_tokens_decoder: {e}")))
}

/// A token's name, given as a string or as an object.
fn token_name(value: &Value) -> Option<&str> {
    value.as_str().or_else(|| value["content"].as_str())
}

/// "ByteLevel", "Sequence(Split, ByteLevel)".
fn pre_name(pre: &Value) -> String {
    let name = pre["type"].as_str().unwrap_or("").to_string();
    match pre["pretokenizers"].as_array() {
        Some(parts) => {
            let parts: Vec<_> = parts.iter().map(|part| part["type"].as_str().unwrap_or("?")).collect();
            format!("{name}({})", parts.join(", "))
        }
        None => name,
    }
}
