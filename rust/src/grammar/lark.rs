//! What is changed in a Lark grammar before llguidance reads it.

use super::spec::{bad, check_patterns, with_bounded_white_space, Kind};
use crate::error::Result;
use serde_json::Value;

/// The grammar with the white space of its `%json` schemas bounded. Refused is the option that lets texts hold bytes that
/// are not UTF-8: the mark before special tokens is one of them.
pub fn bounded(text: &str) -> Result<String> {
    let mut made = String::with_capacity(text.len());
    let mut rest = text;
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix("%json") {
            let Some((schema, end)) = json_prefix(after) else {
                return Err(bad(Kind::Lark, "%json: expected a JSON schema"));
            };
            check_patterns(Kind::Lark, &schema)?;
            made.push_str("%json ");
            made.push_str(&with_bounded_white_space(Kind::Lark, schema)?.to_string());
            rest = &after[end..];
            continue;
        }
        if let Some(Some((options, _))) = rest.strip_prefix("%llguidance").map(json_prefix) {
            if options["allow_invalid_utf8"] == Value::Bool(true) {
                return Err(bad(Kind::Lark, "allow_invalid_utf8: texts are UTF-8"));
            }
        }
        let (piece, after) = rest.split_at(piece_len(rest));
        made.push_str(piece);
        rest = after;
    }
    Ok(made)
}

fn json_prefix(text: &str) -> Option<(Value, usize)> {
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    let value = values.next()?.ok()?;
    Some((value, values.byte_offset()))
}

/// Bytes of the piece that `text` begins with: a comment, a string or a pattern as a whole, for what stands there is no
/// `%json`; else one character.
fn piece_len(text: &str) -> usize {
    let quoted = |quote: char| {
        let mut is_escaped = false;
        for (i, c) in text.char_indices().skip(1) {
            match c {
                _ if is_escaped => is_escaped = false,
                '\\' => is_escaped = true,
                _ if c == quote => return i + 1,
                _ => {}
            }
        }
        text.len()
    };
    match text.chars().next() {
        Some('#') => text.find('\n').unwrap_or(text.len()),
        Some('/') if text.starts_with("//") => text.find('\n').unwrap_or(text.len()),
        Some(c @ ('"' | '/')) => quoted(c),
        Some('%') if json_keyword(text).is_some() => {
            let keyword = json_keyword(text).unwrap_or_default();
            keyword + json_prefix(&text[keyword..]).map_or(0, |(_, end)| end)
        }
        Some(c) => c.len_utf8(),
        None => 0,
    }
}

/// The length of a keyword that JSON follows.
fn json_keyword(text: &str) -> Option<usize> {
    ["%llguidance", "%regex"].iter().find(|word| text.starts_with(**word)).map(|word| word.len())
}
