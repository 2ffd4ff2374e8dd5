//! `{% for x in none %}` is an error in Python and nothing in minijinja. Templates rely on the error, as do the people
//! who wonder why their tools are not in the prompt: so each loop's sequence is passed through a filter that checks it.

use minijinja::{Error, ErrorKind, Value};

pub const FILTER: &str = "_iterable";

pub fn iterable(value: Value) -> Result<Value, Error> {
    if value.is_none() {
        return Err(Error::new(ErrorKind::InvalidOperation, "none is not iterable"));
    }
    Ok(value)
}

/// `source` with `for x in E` written as `for x in (E)|_iterable`; lines stay where they are.
pub fn with_checked_loops(source: &str) -> String {
    let mut out = String::with_capacity(source.len() + 256);
    let mut rest = source;
    while let Some(at) = rest.find('{') {
        let (before, tag) = rest.split_at(at);
        out.push_str(before);
        let len = match tag.as_bytes().get(1) {
            Some(b'#') => tag.find("#}").map_or(tag.len(), |end| end + 2),
            Some(b'{') => tag_length(tag, "}}"),
            Some(b'%') => tag_length(tag, "%}"),
            _ => 1,
        };
        let (tag, mut after) = tag.split_at(len);
        if !tag.starts_with("{%") {
            out.push_str(tag);
        } else if first_word(tag) == "raw" {
            let end = end_of_raw(after);
            out.push_str(tag);
            out.push_str(&after[..end]);
            after = &after[end..];
        } else {
            out.push_str(&checked(tag).unwrap_or_else(|| tag.to_string()));
        }
        rest = after;
    }
    out.push_str(rest);
    out
}

/// Bytes up to and with `close`, which counts only outside of strings and brackets opened in the tag.
fn tag_length(tag: &str, close: &str) -> usize {
    let found = scan(tag, 2, |at, depth| depth == 0 && tag[at..].starts_with(close));
    found.map_or(tag.len(), |at| at + close.len())
}

fn first_word(tag: &str) -> &str {
    let inner = tag[2..].trim_start_matches(['-', '+']).trim_start();
    &inner[..inner.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(inner.len())]
}

fn end_of_raw(text: &str) -> usize {
    let mut from = 0;
    while let Some(at) = text[from..].find("{%") {
        if first_word(&text[from + at..]) == "endraw" {
            return from + at;
        }
        from += at + 2;
    }
    text.len()
}

/// The tag with its sequence checked; None where it is not a loop.
fn checked(tag: &str) -> Option<String> {
    if first_word(tag) != "for" {
        return None;
    }
    let start = word_at(tag, 2, tag.len(), "in")? + 2;
    let close = tag.strip_suffix("%}")?.trim_end_matches(['-', '+']).len();
    let end = ["if", "recursive"].iter().filter_map(|word| word_at(tag, start, close, word)).min().unwrap_or(close);
    let sequence = tag.get(start..end)?;
    let trimmed = sequence.trim_end();
    let space = &sequence[trimmed.len()..];
    Some(format!("{} ({})|{FILTER}{space}{}", &tag[..start], trimmed.trim_start_matches(' '), &tag[end..]))
}

/// Where the keyword `word` stands in tag[from..to], outside of strings and brackets.
fn word_at(tag: &str, from: usize, to: usize, word: &str) -> Option<usize> {
    let part_of_name = |byte: Option<&u8>| byte.is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'_' || *b >= 0x80);
    let bytes = tag.as_bytes();
    let found = scan(tag, from, |at, depth| {
        depth == 0
            && tag[at..].starts_with(word)
            && !part_of_name(bytes.get(at.wrapping_sub(1)))
            && !part_of_name(bytes.get(at + word.len()))
    });
    found.filter(|at| at + word.len() <= to)
}

/// The first place from `from` on, outside of strings, where `stop(place, depth of brackets)` says so.
fn scan(text: &str, from: usize, stop: impl Fn(usize, usize) -> bool) -> Option<usize> {
    let bytes = text.as_bytes();
    let (mut at, mut depth, mut quote) = (from, 0usize, None);
    while at < bytes.len() {
        let byte = bytes[at];
        match quote {
            Some(_) if byte == b'\\' => at += 1,
            Some(open) if byte == open => quote = None,
            Some(_) => {}
            None if text.is_char_boundary(at) && stop(at, depth) => return Some(at),
            None => match byte {
                b'\'' | b'"' => quote = Some(byte),
                b'(' | b'[' | b'{' => depth += 1,
                b')' | b']' | b'}' => depth = depth.saturating_sub(1),
                _ => {}
            },
        }
        at += 1;
    }
    None
}
