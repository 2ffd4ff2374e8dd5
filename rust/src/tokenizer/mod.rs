//! Text to token ids, and the tables that take ids back to text.

mod bpe;
pub mod gguf;
pub mod json;
mod merge;
pub mod pre_table;
mod special;
mod split;
mod spm;
mod text_rule;
pub mod vocab;

use crate::error::{ErrorKind, Result, TextError};
use vocab::VocabTable;

pub enum Encoder {
    Gguf(Box<gguf::GgufEncoder>),
    Json(Box<json::JsonEncoder>),
}

pub struct Info {
    /// "BPE", "SPM", or the model's type in tokenizer.json.
    pub kind: String,
    /// How text is cut into words; empty where it is not.
    pub pre: String,
    pub bos: Option<u32>,
    pub eos: Option<u32>,
    pub unk: Option<u32>,
    pub pad: Option<u32>,
    pub add_bos: bool,
    pub add_eos: bool,
    /// Decoded text drops its first character if that is a space.
    pub strip_first_space: bool,
}

pub struct Tokenizer {
    encoder: Encoder,
    pub table: VocabTable,
    pub info: Info,
}

impl Tokenizer {
    fn new(encoder: Encoder, table: VocabTable, info: Info) -> Self {
        Self { encoder, table, info }
    }

    /// `text` may be any bytes: what is not UTF-8 counts as U+FFFD.
    pub fn encode(&self, text: &[u8], add_special: bool, parse_special: bool) -> Result<Vec<u32>> {
        let text = String::from_utf8_lossy(text);
        match &self.encoder {
            Encoder::Gguf(encoder) => Ok(encoder.encode(&text, add_special, parse_special)),
            Encoder::Json(encoder) => encoder
                .encode(&text, add_special, parse_special)
                .map_err(|e| TextError { kind: ErrorKind::Internal, message: format!("tokenizer: {e}") }),
        }
    }

    pub fn id_of(&self, piece: &str) -> Option<u32> {
        match &self.encoder {
            Encoder::Gguf(encoder) => encoder.id_of(piece),
            Encoder::Json(encoder) => encoder.id_of(piece),
        }
    }
}
