//! `{% for x in none %}` is an error in Python and nothing in minijinja. Templates rely on the error, as do the people
//! who wonder why their tools are not in the prompt: so each loop's sequence is passed through a filter that checks it.

use super::tags::{first_word, word_at};
use minijinja::{Error, ErrorKind, Value};

pub const FILTER: &str = "_iterable";

pub fn iterable(value: Value) -> Result<Value, Error> {
    if value.is_none() {
        return Err(Error::new(ErrorKind::InvalidOperation, "none is not iterable"));
    }
    Ok(value)
}

/// `{% for x in E %}` as `{% for x in (E)|_iterable %}`; None where the tag is not a loop.
pub fn checked_loop(tag: &str) -> Option<String> {
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
