//! The bytes of text behind each token of a tokenizer.json, read off its decoder, so that text can be put together
//! token by token.

use super::vocab::{byte_token, from_byte_alphabet};
use crate::error::{unsupported, Result};
use regex::Regex;
use serde_json::Value;

enum Edit {
    ByteLevel,
    ByteFallback,
    Replace {
        from: Regex,
        to: String,
    },
    /// WordPiece: a space before every token that does not begin with the prefix.
    Words {
        prefix: String,
    },
}

pub struct TextRule {
    edits: Vec<Edit>,
    /// The text drops its first character if that is a space.
    pub strip_first_space: bool,
}

impl TextRule {
    /// `decoder`: the decoder of a tokenizer.json, null for none.
    pub fn from_decoder(decoder: &Value) -> Result<Self> {
        let mut rule = Self { edits: Vec::new(), strip_first_space: false };
        if decoder.is_null() {
            rule.edits.push(Edit::Words { prefix: String::new() });
            rule.strip_first_space = true;
        } else {
            rule.add(decoder)?;
        }
        Ok(rule)
    }

    fn add(&mut self, decoder: &Value) -> Result<()> {
        match decoder["type"].as_str().unwrap_or("") {
            "Sequence" => {
                for part in decoder["decoders"].as_array().into_iter().flatten() {
                    self.add(part)?;
                }
            }
            "ByteLevel" => self.edits.push(Edit::ByteLevel),
            "ByteFallback" => self.edits.push(Edit::ByteFallback),
            "Fuse" => {}
            "Replace" => {
                let (literal, pattern) = (&decoder["pattern"]["String"], &decoder["pattern"]["Regex"]);
                let pattern = literal.as_str().map(regex::escape).or(pattern.as_str().map(str::to_string));
                let from = pattern.and_then(|p| Regex::new(&p).ok()).ok_or_else(|| {
                    unsupported(format!("tokenizer.json: decoder Replace with the pattern {}", decoder["pattern"]))
                })?;
                let to = decoder["content"].as_str().unwrap_or("").to_string();
                self.edits.push(Edit::Replace { from, to });
            }
            "Strip" if decoder["content"] == " " && decoder["stop"].as_u64().unwrap_or(0) == 0 => {
                self.strip_first_space |= decoder["start"].as_u64().unwrap_or(0) > 0;
            }
            "Metaspace" => {
                let from = decoder["replacement"].as_str().unwrap_or("\u{2581}");
                let from = Regex::new(&regex::escape(from))
                    .map_err(|e| unsupported(format!("tokenizer.json: decoder Metaspace: {e}")))?;
                self.edits.push(Edit::Replace { from, to: " ".into() });
                let prepends = decoder["prepend_scheme"].as_str().unwrap_or("always") != "never";
                self.strip_first_space |= prepends && decoder["add_prefix_space"].as_bool().unwrap_or(true);
            }
            "WordPiece" => {
                self.edits.push(Edit::Words { prefix: decoder["prefix"].as_str().unwrap_or("##").into() });
                self.strip_first_space = true;
            }
            other => {
                return Err(unsupported(format!(
                    "tokenizer.json: the decoder \"{}\" is not supported, expected ByteLevel, ByteFallback, Replace, Fuse, Strip of leading spaces, Metaspace, WordPiece or a Sequence of them",
                    other.escape_debug()
                )))
            }
        }
        Ok(())
    }

    /// What a token of the model adds to the text.
    pub fn text(&self, piece: &str) -> Vec<u8> {
        let mut text = piece.to_string();
        for edit in &self.edits {
            match edit {
                Edit::ByteLevel => {
                    if let Some(bytes) = from_byte_alphabet(&text) {
                        return bytes;
                    }
                }
                Edit::ByteFallback => {
                    if let Some(byte) = byte_token(&text) {
                        return vec![byte];
                    }
                }
                Edit::Replace { from, to } => text = from.replace_all(&text, regex::NoExpand(to)).into_owned(),
                Edit::Words { prefix } => {
                    text = match text.strip_prefix(prefix.as_str()) {
                        Some(rest) if !prefix.is_empty() => rest.to_string(),
                        _ => format!(" {text}"),
                    }
                }
            }
        }
        text.into_bytes()
    }

    /// What an added token adds: it is text already, but for the space that parts words.
    pub fn added_text(&self, content: &str) -> Vec<u8> {
        let words = self.edits.iter().any(|edit| matches!(edit, Edit::Words { .. }));
        if words {
            format!(" {content}").into_bytes()
        } else {
            content.as_bytes().to_vec()
        }
    }
}
