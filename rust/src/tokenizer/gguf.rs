//! Tokenizers from the vocabulary inside a GGUF file.
//! Keys and token types: docs/gguf.md of github.com/ggml-org/ggml; defaults where keys are absent: llama.cpp.

use super::bpe::Bpe;
use super::merge::NO_TOKEN;
use super::pre_table;
use super::special::{drop_false_ends, ends_generation, Fragment, Matcher};
use super::spm::Spm;
use super::vocab::{byte_token, from_byte_alphabet, VocabTable, FLAG_END};
use super::{Info, Tokenizer};
use crate::error::{corrupt, unsupported, Result};
use ahash::AHashMap;

/// The keys `tokenizer.ggml.*` of a file, and its `general.name`.
pub struct GgufVocab<'a> {
    pub model: &'a str,
    pub pre: &'a str,
    pub model_name: &'a str,
    pub tokens: Vec<std::borrow::Cow<'a, str>>,
    pub scores: &'a [f32],
    pub types: &'a [i32],
    pub merges: Vec<&'a str>,
    pub bos: Option<u32>,
    pub eos: Option<u32>,
    pub eot: Option<u32>,
    pub eom: Option<u32>,
    pub unk: Option<u32>,
    pub pad: Option<u32>,
    pub add_bos: Option<bool>,
    pub add_eos: Option<bool>,
    pub add_space_prefix: Option<bool>,
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Normal,
    Unknown,
    Control,
    UserDefined,
    Byte,
}

enum Model {
    Bpe(Bpe),
    Spm { model: Spm, space_prefix: bool },
}

pub struct GgufEncoder {
    model: Model,
    user_defined: Matcher,
    all_added: Matcher,
    bos: Option<u32>, // put before the text
    eos: Option<u32>, // put after it
    ids: AHashMap<String, u32>,
}

impl GgufEncoder {
    pub fn id_of(&self, piece: &str) -> Option<u32> {
        self.ids.get(piece).copied()
    }

    pub fn encode(&self, text: &str, add_special: bool, parse_special: bool) -> Vec<u32> {
        let mut out = Vec::with_capacity(text.len() / 3 + 2);
        if add_special {
            out.extend(self.bos);
        }
        let mut after_token = true;
        for fragment in (if parse_special { &self.all_added } else { &self.user_defined }).cut(text) {
            match (fragment, &self.model) {
                (Fragment::Token(id), _) => {
                    out.push(id);
                    after_token = true;
                    continue;
                }
                (Fragment::Text(text), Model::Bpe(bpe)) => bpe.encode(text, &mut out),
                (Fragment::Text(text), Model::Spm { model, space_prefix }) => {
                    if *space_prefix && after_token {
                        model.encode(&format!(" {text}"), &mut out);
                    } else {
                        model.encode(text, &mut out);
                    }
                }
            }
            after_token = false;
        }
        if add_special {
            out.extend(self.eos);
        }
        out
    }
}

pub fn load(vocab: GgufVocab) -> Result<Tokenizer> {
    let spm = match vocab.model {
        "llama" => true,
        "gpt2" | "gemma4" => false,
        other => {
            return Err(unsupported(format!(
                "tokenizer.ggml.model: \"{}\" is not supported, expected \"gpt2\" (byte-pair encoding) or \"llama\" (SentencePiece)",
                other.escape_debug()
            )))
        }
    };
    let pre_name = if vocab.model == "gemma4" { "gemma4" } else { vocab.pre };
    let pre = pre_table::find(pre_name).ok_or_else(|| {
        unsupported(format!("tokenizer.ggml.pre: the pre-tokenizer \"{}\" is not known", pre_name.escape_debug()))
    });
    let count = vocab.tokens.len();
    if count == 0 {
        return Err(corrupt("tokenizer.ggml.tokens: the vocabulary is empty"));
    }
    for (key, len) in [("scores", vocab.scores.len()), ("token_type", vocab.types.len())] {
        if len != 0 && len != count {
            return Err(corrupt(format!(
                "tokenizer.ggml.{key}: {len} entries, expected {count} as in tokenizer.ggml.tokens"
            )));
        }
    }

    let in_range = |key: &str, id: Option<u32>| match id {
        Some(id) if id as usize >= count => Err(corrupt(format!(
            "tokenizer.ggml.{key}_token_id: {id}, expected less than {count}, the number of tokens"
        ))),
        id => Ok(id),
    };
    let default = |id: u32| (spm && (id as usize) < count).then_some(id);
    let bos = in_range("bos", vocab.bos)?.or(default(1));
    let eos = in_range("eos", vocab.eos)?.or(default(2));
    let unk = in_range("unknown", vocab.unk)?.or(default(0));
    let eot = in_range("eot", vocab.eot)?;
    let eom = in_range("eom", vocab.eom)?;
    let pad = in_range("padding", vocab.pad)?;

    let mut kinds = kinds_of(&vocab);
    let ends_by_key = [eos, eot, eom];
    for id in [bos, eos, eot, eom].into_iter().flatten().map(|id| id as usize) {
        // The file calls it a control token by its use; a single character stays what text is made of.
        if kinds[id] == Kind::Normal && vocab.tokens[id].chars().count() > 1 {
            kinds[id] = Kind::Control;
        }
    }

    // What plain text may become; the first of equal tokens counts.
    let mut plain: AHashMap<&str, u32> = AHashMap::with_capacity(count);
    let mut all: AHashMap<String, u32> = AHashMap::with_capacity(count);
    let mut bytes = [NO_TOKEN; 256];
    for (id, piece) in vocab.tokens.iter().enumerate() {
        all.entry(piece.to_string()).or_insert(id as u32);
        match kinds[id] {
            Kind::Normal | Kind::UserDefined if !piece.is_empty() => {
                plain.entry(piece).or_insert(id as u32);
            }
            Kind::Byte => {
                if let Some(byte) = byte_token(piece) {
                    bytes[byte as usize] = id as u32;
                }
            }
            _ => {}
        }
    }

    let (model, kind, pre_label, default_bos) = if spm {
        let model = Spm::new(&plain, vocab.scores, &bytes, unk);
        let space_prefix = vocab.add_space_prefix.unwrap_or(true);
        (Model::Spm { model, space_prefix }, "SPM", "", true)
    } else {
        let pre = pre?;
        if vocab.merges.is_empty() {
            return Err(corrupt("tokenizer.ggml.merges: absent or empty, expected the merges of a byte-pair encoding"));
        }
        let model = Bpe::new(pre, &plain, &bytes, &vocab.merges)?;
        (Model::Bpe(model), "BPE", if pre_name.is_empty() { "default" } else { pre_name }, pre.add_bos)
    };

    // Only the Phi-3 tokenizer drops white space after its tokens, and GGUF has no key for that.
    let name = vocab.model_name.to_lowercase();
    let phi3 = name.contains("phi-3") || name.contains("phi3");
    let strips = |piece: &str| phi3 && !matches!(piece, "<unk>" | "<s>" | "<|endoftext|>");
    let added = |kinds_wanted: &[Kind]| {
        let ids = (0..count).filter(|id| kinds_wanted.contains(&kinds[*id]) && !vocab.tokens[*id].is_empty());
        let tokens: Vec<_> = ids.map(|id| (&*vocab.tokens[id], id as u32, strips(&vocab.tokens[id]))).collect();
        Matcher::new(&tokens)
    };

    let wants_bos = vocab.add_bos.unwrap_or(default_bos);
    if wants_bos && vocab.add_bos.is_some() && bos.is_none() {
        return Err(corrupt("tokenizer.ggml.add_bos_token: true, but tokenizer.ggml.bos_token_id is absent"));
    }
    let wants_eos = vocab.add_eos.unwrap_or(false);
    if wants_eos && eos.is_none() {
        return Err(corrupt("tokenizer.ggml.add_eos_token: true, but tokenizer.ggml.eos_token_id is absent"));
    }
    let encoder = GgufEncoder {
        user_defined: added(&[Kind::UserDefined])?,
        all_added: added(&[Kind::UserDefined, Kind::Control, Kind::Unknown])?,
        bos: bos.filter(|_| wants_bos),
        eos: eos.filter(|_| wants_eos),
        model,
        ids: all,
    };

    let mut ends: Vec<u32> = (0..count).filter(|id| ends_generation(&vocab.tokens[*id])).map(|id| id as u32).collect();
    drop_false_ends(&mut ends, |name| encoder.id_of(name));
    ends.extend(ends_by_key.into_iter().flatten());

    let mut table = VocabTable::default();
    for (id, piece) in vocab.tokens.iter().enumerate() {
        table.push(
            piece,
            &text_of(piece, kinds[id], spm || bpe_in_characters(pre_name)),
            matches!(kinds[id], Kind::Control | Kind::Unknown),
        );
    }
    for id in ends {
        table.flags[id as usize] |= FLAG_END;
    }

    let info = Info {
        kind: kind.into(),
        pre: pre_label.into(),
        bos,
        eos,
        unk,
        pad,
        add_bos: encoder.bos.is_some(),
        add_eos: encoder.eos.is_some(),
        strip_first_space: matches!(encoder.model, Model::Spm { space_prefix: true, .. }),
    };
    Ok(Tokenizer::new(super::Encoder::Gguf(Box::new(encoder)), table, info))
}

fn kinds_of(vocab: &GgufVocab) -> Vec<Kind> {
    let kind_of = |(id, piece): (usize, &std::borrow::Cow<str>)| {
        if ends_generation(piece) {
            return Kind::Control; // some files call these normal
        }
        match vocab.types.get(id) {
            Some(2) => Kind::Unknown,
            Some(3) => Kind::Control,
            Some(4) => Kind::UserDefined,
            Some(6) => Kind::Byte,
            _ => Kind::Normal,
        }
    };
    vocab.tokens.iter().enumerate().map(kind_of).collect()
}

fn bpe_in_characters(pre_name: &str) -> bool {
    pre_table::find(pre_name).is_some_and(|pre| pre.alphabet != pre_table::Alphabet::Bytes)
}

/// The bytes of text that a token adds.
fn text_of(piece: &str, kind: Kind, characters: bool) -> Vec<u8> {
    match kind {
        Kind::Byte => byte_token(piece).map_or_else(|| piece.as_bytes().to_vec(), |byte| vec![byte]),
        Kind::Normal if characters => piece.replace('\u{2581}', " ").into_bytes(),
        Kind::Normal => from_byte_alphabet(piece).unwrap_or_else(|| piece.as_bytes().to_vec()),
        _ => piece.as_bytes().to_vec(),
    }
}
