//! Finds the tags of a Jinja source without parsing what is in them.

/// `source` with each `{% ... %}` outside of comments and raw blocks replaced by what `rewrite` makes of it (None: stays).
/// `look` sees the same tags and each `{{ ... }}` first, and may refuse.
pub fn rewrite_tags<E>(
    source: &str,
    look: impl Fn(&str) -> Result<(), E>,
    rewrite: impl Fn(&str) -> Option<String>,
) -> Result<String, E> {
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
        if tag.starts_with("{{") {
            look(tag)?;
            out.push_str(tag);
        } else if !tag.starts_with("{%") {
            out.push_str(tag);
        } else if first_word(tag) == "raw" {
            let end = end_of_raw(after);
            out.push_str(tag);
            out.push_str(&after[..end]);
            after = &after[end..];
        } else {
            look(tag)?;
            out.push_str(&rewrite(tag).unwrap_or_else(|| tag.to_string()));
        }
        rest = after;
    }
    out.push_str(rest);
    Ok(out)
}

/// Bytes up to and with `close`, which counts only outside of strings and brackets opened in the tag.
fn tag_length(tag: &str, close: &str) -> usize {
    let found = scan(tag, 2, |at, depth| depth == 0 && tag[at..].starts_with(close));
    found.map_or(tag.len(), |at| at + close.len())
}

/// The word that says what a `{% ... %}` is.
pub fn first_word(tag: &str) -> &str {
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

/// Where the keyword `word` stands in tag[from..to], outside of strings and brackets.
pub fn word_at(tag: &str, from: usize, to: usize, word: &str) -> Option<usize> {
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
pub fn scan(text: &str, from: usize, stop: impl Fn(usize, usize) -> bool) -> Option<usize> {
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
